"""The job controller: runs pods until enough of them have succeeded.

A finalizer keeps each pod of a job until its result is counted in the status of the job. The pod
failure policy and the success policy of a job are pure functions.

Upstream: pkg/controller/job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from podium.lab.api.encoding import parse_time
from podium.lab.controllers.framework.controller import (
    BURST,
    PodOwningController,
    pod_from_template,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    condition,
    is_terminating,
    key_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import LabPods, PodInfo
from podium.objects.kinds.meta import JsonObject

#: The annotation with the failures of an index before a pod of it was created.
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"
TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
#: Seconds until a failed pod is replaced for the first time, and at most; they double each time.
_FIRST_BACKOFF: Final = 1.0
_MAX_BACKOFF: Final = 60.0


class FailureAction(NamedTuple):
    """What follows from a failed pod, and why."""

    action: str
    message: str = ""


def action_of(spec: JsonObject, pod: JsonObject) -> FailureAction:
    """The action of the first rule that a failed pod matches; a pod that matches none counts."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        found = _matched_exit_code(rule, pod) or _matched_condition(rule, pod)
        if found:
            action = str(rule.get("action"))
            return FailureAction(action, f"{found} matching {action} rule at index {index}")
    return FailureAction(COUNT)


def _matched_exit_code(rule: JsonObject, pod: JsonObject) -> str:
    wanted = rule.get("onExitCodes")
    if not wanted:
        return ""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    statuses = [
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    ]
    for each in statuses:
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        if not code or wanted.get("containerName") not in (None, each.get("name")):
            continue  # a container that ended well matches no rule, not even one of NotIn
        among = code in (wanted.get("values") or ())
        if among == (wanted.get("operator") == "In"):
            name = f"{metadata.get('namespace')}/{metadata['name']}"
            return f"Container {each.get('name')} for pod {name} failed with exit code {code}"
    return ""


def _matched_condition(rule: JsonObject, pod: JsonObject) -> str:
    present = {
        (each.get("type"), each.get("status"))
        for each in (pod.get("status") or {}).get("conditions") or ()
    }
    for wanted in rule.get("onPodConditions") or ():
        if (wanted.get("type"), wanted.get("status") or "True") in present:
            metadata = pod["metadata"]
            name = f"{metadata.get('namespace')}/{metadata['name']}"
            return f"Pod {name} has condition {wanted.get('type')}"
    return ""


def matched_success_rule(spec: JsonObject, completed: set[int]) -> str:
    """The message of the first rule of the success policy that holds; empty if none does."""
    rules = (spec.get("successPolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        among = completed if text is None else completed & set(parse_indexes(text))
        needed = len(parse_indexes(text or "")) if count is None else count
        if len(among) >= needed and needed:
            return f"Matched rules at index {index}"
    return ""


def failures_of_index(pod: JsonObject) -> tuple[int, int]:
    """The counted and the ignored failures of an index before this pod of it."""
    annotations = pod["metadata"].get("annotations") or {}

    def number(name: str) -> int:
        text = str(annotations.get(name, ""))
        return int(text) if text.isdigit() else 0

    return number(FAILURE_COUNT), number(IGNORED_COUNT)


def parse_indexes(text: str) -> list[int]:
    """Parse indexes such as "0,2-4"."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def format_indexes(numbers: set[int]) -> str:
    """Format indexes, with runs of numbers as "2-4"; two in a row are both written."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = (str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)
    return ",".join(parts)


class _TerminatingPod(NamedTuple):
    """A key for a pod of a job that is being deleted, or that no job manages any more."""

    pod: Key


class JobController(PodOwningController[Key | _TerminatingPod]):
    """Runs jobs. Its keys are those of jobs and of terminating pods."""

    name: ClassVar = "job-controller"
    kind: ClassVar = "Job"

    def on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        """Enqueue the jobs of a pod, and the pod if it is deleted or no longer one of its job."""
        super().on_pod(old, new)
        was_owned = old is not None and old.owner is not None and old.owner[0] == "Job"
        if new is not None and old is not None and was_owned and old.owner != new.owner:
            self.enqueue(_TerminatingPod(new.key))
        if new is not None and new.terminating and new.owner and new.owner[0] == "Job":
            self.enqueue(_TerminatingPod(new.key))

    def on_listed_pods(self, pods: LabPods) -> None:
        """Look at the terminating pods of jobs; the jobs enqueue themselves."""
        for pod in pods.all.values():
            if pod.terminating and pod.owner is not None and pod.owner[0] == "Job":
                self.enqueue(_TerminatingPod(pod.key))

    def sync(self, key: Key | _TerminatingPod) -> None:
        """Count finished pods of a job, create or delete pods, and update the status.

        A terminating pod is released if there is nothing to count.
        """
        if isinstance(key, _TerminatingPod):
            self._release_uncounted(key.pod)
            return
        job = self.owner_with_pods(key)
        if job is None:
            return
        if is_terminating(job):
            for pod in list(self.cluster.pods.of_owner(uid_of(job))):
                if pod.terminating:
                    self.release(pod.key)
            return
        _JobSync(self, job).run()

    def _release_uncounted(self, key: Key) -> None:
        """Release a terminating pod that never had a node, or a pod whose job is gone."""
        pod = self.cluster.pods.all.get(key)
        if pod is not None and pod.owner is None:
            self.release(key)
        elif pod is not None and pod.owner is not None:
            job = self.cluster.get("Job", key[0], pod.owner[1])
            if not pod.node or job is None or uid_of(job) != pod.owner[2]:
                self.release(key)

    def release(self, key: Key) -> None:
        """Remove the tracking finalizer from a pod."""
        pod = self.cluster.get("Pod", *key)
        if pod is not None and TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ()):
            self.cluster.remove_finalizer("Pod", key, TRACKING_FINALIZER)


class _JobSync:
    """One sync of one job: its pods at the start, and the status that is being built."""

    def __init__(self, controller: JobController, job: JsonObject) -> None:
        self.controller = controller
        self.cluster = controller.cluster
        self.job = job
        self.key = key_of(job)
        self.spec: JsonObject = job["spec"]
        self.status: JsonObject = dict(job.get("status") or {})
        self.pods = list(self.cluster.pods.of_owner(uid_of(job)))
        self.indexed = self.spec.get("completionMode") == "Indexed"
        #: What a pod failure policy says of the whole job.
        self.failed_by_policy = ""

    def run(self) -> None:
        counted = self._count_finished()
        if self._is_finished():
            self._delete_active_pods()
        elif (failure := self._failure()) is not None:
            self._finish("Failed", *failure)
        elif message := matched_success_rule(self.spec, self._indexes("completedIndexes")):
            self._finish("Complete", "SuccessPolicy", message)
        elif self._has_succeeded():
            self._finish(
                "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
        elif self.spec.get("suspend"):
            self._suspend()
        else:
            self._resume()
            self._scale_pods()
        self._update_status()
        for pod in counted:
            self.controller.release(pod.key)
        self._delete_after_ttl()

    def _count_finished(self) -> list[PodInfo]:
        """Count finished pods that are not in the status yet; all pods that may be released."""
        uncounted = self.status.get("uncountedTerminatedPods") or {}
        known = {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}
        finished = list(self._tracked_pods())
        added: dict[str, list[str]] = {"succeeded": [], "failed": []}
        completed = self._indexes("completedIndexes")
        for pod, whole in finished:
            if pod.uid in known:
                continue
            if pod.phase == "Succeeded":
                added["succeeded"].append(pod.uid)
                completed |= {_index_of(pod)} if self.indexed else set()
            elif self._counts_as_failed(pod, whole):
                added["failed"].append(pod.uid)
        for result, uids in added.items():
            if uids:
                self.status[result] = self.status.get(result, 0) + len(uids)
        if self.indexed:
            self.status["completedIndexes"] = format_indexes(completed)
            self.status["succeeded"] = len(completed)
        self.status["uncountedTerminatedPods"] = {
            result: uids for result, uids in added.items() if uids
        }
        return [pod for pod, _ in finished]

    def _tracked_pods(self) -> Iterator[tuple[PodInfo, JsonObject]]:
        """The finished pods that the tracking finalizer keeps."""
        for pod in self.pods:
            whole = self.cluster.get("Pod", *pod.key) if pod.finished else None
            finalizers = None if whole is None else whole["metadata"].get("finalizers")
            if whole is not None and TRACKING_FINALIZER in (finalizers or ()):
                yield pod, whole

    def _indexes(self, name: str) -> set[int]:
        """The indexes that a field of the status lists."""
        return set(parse_indexes(self.status.get(name) or ""))

    def _counts_as_failed(self, pod: PodInfo, whole: JsonObject) -> bool:
        """Whether a failed pod is counted; its pod failure policy may fail the job or its index."""
        found = action_of(self.spec, whole)
        if found.action == FAIL_JOB:
            self.failed_by_policy = self.failed_by_policy or found.message
        limit = self.spec.get("backoffLimitPerIndex")
        if limit is not None and self.indexed:
            failures = failures_of_index(whole)[0] + (found.action != IGNORE)
            if found.action == FAIL_INDEX or failures > limit:
                failed = self._indexes("failedIndexes") | {_index_of(pod)}
                self.status["failedIndexes"] = format_indexes(failed)
        return found.action != IGNORE

    def _active_pods(self) -> list[PodInfo]:
        return [pod for pod in self.cluster.pods.of_owner(uid_of(self.job)) if pod.active]

    def _is_finished(self) -> bool:
        return any(
            each.get("type") in {"Complete", "Failed"} and each.get("status") == "True"
            for each in self.status.get("conditions") or ()
        )

    def _has_succeeded(self) -> bool:
        succeeded = self.status.get("succeeded", 0)
        completions = self.spec.get("completions")
        if completions is None:  # a work queue: one success, and no other pod is running
            return bool(succeeded) and not self._active_pods()
        return bool(succeeded >= completions)

    def _failure(self) -> tuple[str, str] | None:
        """The reason and message of a failed job; None if it may go on."""
        if self.failed_by_policy:
            return "PodFailurePolicy", self.failed_by_policy
        limit = self.spec.get("backoffLimit", 6)
        if self.status.get("failed", 0) > limit:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        return self._failed_indexes() or self._missed_deadline()

    def _failed_indexes(self) -> tuple[str, str] | None:
        """Whether too many indexes failed, or all others are done."""
        if self.spec.get("backoffLimitPerIndex") is None:
            return None
        failed, most = self._indexes("failedIndexes"), self.spec.get("maxFailedIndexes")
        if most is not None and len(failed) > most:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return "MaxFailedIndexesExceeded", text
        done = len(failed | self._indexes("completedIndexes"))
        if failed and done >= self.spec.get("completions", 0):
            return "FailedIndexes", "Job has failed indexes"
        return None

    def _missed_deadline(self) -> tuple[str, str] | None:
        deadline, started = self.spec.get("activeDeadlineSeconds"), self.status.get("startTime")
        if deadline is None or not started or self.spec.get("suspend"):
            return None
        left = (parse_time(started) or 0.0) + deadline - self.cluster.now()
        if left <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        self.controller.enqueue(self.key, after=left, clock=True)
        return None

    def _finish(self, kind: str, reason: str, text: str) -> None:
        criterion = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        at = self.cluster.timestamp()
        self._delete_active_pods()
        for each in (criterion, kind):
            self._set_condition(each, "True", reason, text)
        if kind == "Complete":
            self.status["completionTime"] = at
            self.controller.record(self.job, "Completed", "Job completed")
        else:
            self.controller.warn(self.job, reason, text)

    def _delete_active_pods(self) -> None:
        for pod in self._active_pods():
            self._delete_uncounted(pod)

    def _delete_uncounted(self, pod: PodInfo) -> None:
        """Delete a pod that is not needed; its result is not counted."""
        self.controller.release(pod.key)
        self.cluster.delete_pod(pod)

    def _suspend(self) -> None:
        self._delete_active_pods()
        self._set_condition("Suspended", "True", "JobSuspended", "Job suspended")
        self.status.pop("startTime", None)

    def _resume(self) -> None:
        if condition({"status": self.status}, "Suspended").get("status") == "True":
            self._set_condition("Suspended", "False", "JobResumed", "Job resumed")
        self.status.setdefault("startTime", self.cluster.timestamp())
        deadline = self.spec.get("activeDeadlineSeconds")
        if deadline is not None:
            self.controller.enqueue(self.key, after=deadline, clock=True)

    def _scale_pods(self) -> None:
        active = self._active_pods()
        parallelism = self.spec.get("parallelism")
        wanted = 1 if parallelism is None else parallelism
        completions = self.spec.get("completions")
        if completions is not None:
            ended = self.status.get("succeeded", 0) + len(self._indexes("failedIndexes"))
            wanted = min(wanted, completions - ended)
        elif self.status.get("succeeded", 0):
            wanted = len(active)  # a work queue gets no new pods once one has succeeded
        failed = self._indexes("failedIndexes")
        surplus = [pod for pod in active if self.indexed and _index_of(pod) in failed]
        staying = [pod for pod in active if pod not in surplus]
        for pod in [*surplus, *staying[max(wanted, 0) :]]:
            self._delete_uncounted(pod)
        missing = wanted - len(staying)
        if self._replaces_when_failed():
            missing -= sum(pod.terminating and not pod.finished for pod in self.pods)
        if missing <= 0 or (
            self.spec.get("backoffLimitPerIndex") is None and self._is_backing_off()
        ):
            return
        free = self._free_indexes(staying) if self.indexed else []
        for place in range(min(missing, BURST, len(free) if self.indexed else missing)):
            self._create_pod(free[place] if self.indexed else None)
        if missing > BURST:
            self.controller.enqueue(self.key)

    def _replaces_when_failed(self) -> bool:
        """Whether a terminating pod is replaced only after it has ended."""
        default = "Failed" if self.spec.get("podFailurePolicy") else "TerminatingOrFailed"
        return (self.spec.get("podReplacementPolicy") or default) == "Failed"

    def _is_backing_off(self) -> bool:
        """Whether the last failure is too recent to create another pod."""
        failed = self.status.get("failed", 0)
        if not failed:
            return False
        return self._waits_after([pod for pod in self.pods if pod.phase == "Failed"], failed)

    def _waits_after(self, failed_pods: list[PodInfo], failures: int) -> bool:
        """Whether the last of these failures is too recent; then the job is looked at later."""
        backoff = min(_FIRST_BACKOFF * 2.0 ** min(failures - 1, 20), _MAX_BACKOFF)
        last = max((_finished_at(pod) for pod in failed_pods), default=0.0)
        left = last + backoff - self.cluster.now()
        if left > 0:
            self.controller.enqueue(self.key, after=left)
        return bool(left > 0)

    def _free_indexes(self, active: list[PodInfo]) -> list[int]:
        taken = {_index_of(pod) for pod in active}
        taken |= self._indexes("completedIndexes") | self._indexes("failedIndexes")
        free = [n for n in range(self.spec.get("completions") or 0) if n not in taken]
        if self.spec.get("backoffLimitPerIndex") is None:
            return free
        return [n for n in free if not self._index_waits(n)]

    def _index_waits(self, index: int) -> bool:
        """Whether the last failure of an index is too recent for another pod of it."""
        failed = [pod for pod in self.pods if pod.phase == "Failed" and _index_of(pod) == index]
        return bool(failed) and self._waits_after(failed, len(failed))

    def _failures_before(self, index: int) -> dict[str, str]:
        """The annotations with the failures of an index so far, for its next pod."""
        counted = ignored = 0
        for pod in self.pods:
            whole = None
            if pod.phase == "Failed" and _index_of(pod) == index:
                whole = self.cluster.get("Pod", *pod.key)
            if whole is None:
                continue
            before, left_out = failures_of_index(whole)
            counts = action_of(self.spec, whole).action in {COUNT, FAIL_JOB}
            counted, ignored = max(counted, before + counts), max(ignored, left_out + (not counts))
        return {FAILURE_COUNT: str(counted), **({IGNORED_COUNT: str(ignored)} if ignored else {})}

    def _create_pod(self, index: int | None) -> None:
        pod = pod_from_template(self.spec["template"], self.job)
        metadata = pod["metadata"]
        uid, name = uid_of(self.job), self.job["metadata"]["name"]
        metadata["labels"] |= {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING_FINALIZER]
        if index is not None:
            annotations = metadata.get("annotations") or {}
            metadata["generateName"] = f"{name}-{index}-"
            metadata["labels"][INDEX_LABEL] = str(index)
            if self.spec.get("backoffLimitPerIndex") is not None:
                annotations = {**annotations, **self._failures_before(index)}
            metadata["annotations"] = {**annotations, INDEX_LABEL: str(index)}
            pod["spec"]["hostname"] = f"{name}-{index}"
        self.controller.create_pod(self.job, pod)

    def _set_condition(self, kind: str, value: str, reason: str, text: str) -> None:
        conditions = list(self.status.get("conditions") or ())
        if condition({"status": self.status}, kind).get("status") == value:
            return
        at = self.cluster.timestamp()
        made = {
            "type": kind,
            "status": value,
            "lastProbeTime": at,
            "lastTransitionTime": at,
            "reason": reason,
            "message": text,
        }
        self.status["conditions"] = [e for e in conditions if e.get("type") != kind] + [made]

    def _update_status(self) -> None:
        pods = list(self.cluster.pods.of_owner(uid_of(self.job)))
        active = [pod for pod in pods if pod.active]
        numbers = {
            "active": len(active),
            "ready": sum(pod.ready for pod in active),
            "terminating": sum(pod.terminating for pod in pods),
        }
        status = {**self.status, **numbers}
        optional = ("active", "succeeded", "failed", "completedIndexes")
        status = {k: v for k, v in status.items() if v or k not in optional}
        present = self.cluster.get("Job", *self.key)
        if present is not None:
            self.cluster.update_status(present, status)

    def _delete_after_ttl(self) -> None:
        ttl = self.spec.get("ttlSecondsAfterFinished")
        if ttl is None or not self._is_finished():
            return
        finished = [
            parse_time(each.get("lastTransitionTime")) or 0.0
            for each in self.status.get("conditions") or ()
            if each.get("type") in {"Complete", "Failed"}
        ]
        left = max(finished) + ttl - self.cluster.now()
        if left > 0:
            self.controller.enqueue(self.key, after=left, clock=True)
        else:
            self.cluster.delete(self.job)


def _finished_at(pod: PodInfo) -> float:
    return parse_time(pod.ready_changed) or 0.0


def _index_of(pod: PodInfo) -> int:
    text = pod.labels.get(INDEX_LABEL, "")
    return int(text) if text.isdigit() else -1
