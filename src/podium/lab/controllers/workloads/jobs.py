"""Jobs: pods that are run until enough of them have succeeded.

A pod of a job is held by a finalizer until its end has been counted.

Upstream: pkg/controller/job.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import (
    condition,
    is_leaving,
    key_of,
    moment,
    uid_of,
)
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.lab.controllers.framework.pod_template import from_template
from podium.objects.kinds.meta import JsonObject

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
#: Seconds until a failed pod is replaced, for the first time; doubled each time.
_BACKOFF: Final = 1.0
_LONGEST_BACKOFF: Final = 60.0
_BURST: Final = 100


class Jobs(Controller):
    """Runs jobs."""

    name: ClassVar = "job-controller"
    hears_pods = True

    def hears(self) -> dict[str, Hearing]:
        """Of jobs."""
        return {"Job": self.hear_own}

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod of a job changed."""
        pod = new or old
        assert pod is not None
        if pod.owner is not None and pod.owner[0] == "Job":
            self.add((pod.key[0], pod.owner[1]))
            if new is not None and new.leaving:
                self.add(("pod", new.key))

    def sync(self, key: Any) -> None:
        """Count what ended, then make or delete pods."""
        if key[0] == "pod":
            self._release_orphan(key[1])
            return
        job = self.cluster.get("Job", *key)
        if job is None:
            return
        if is_leaving(job):
            for pod in list(self.cluster.pods.of_owner(uid_of(job))):
                if pod.leaving:
                    self.release(pod.key)
            return
        _Round(self, job).run()

    def _release_orphan(self, key: Key) -> None:
        """A pod that never ran, or whose job is gone, need not be counted."""
        pod = self.cluster.pods.all.get(key)
        if pod is not None and pod.owner is not None:
            job = self.cluster.get("Job", key[0], pod.owner[1])
            if not pod.node or job is None or uid_of(job) != pod.owner[2]:
                self.release(key)

    def release(self, key: Key) -> None:
        """Take the finalizer from a pod that has been counted."""
        pod = self.cluster.get("Pod", *key)
        if pod is not None and TRACKING in (pod["metadata"].get("finalizers") or ()):
            self.cluster.change("Pod", key, _untracked)


class _Round:
    """One look at one job."""

    def __init__(self, controller: Jobs, job: JsonObject) -> None:
        self.controller = controller
        self.cluster = controller.cluster
        self.job = job
        self.key = key_of(job)
        self.spec: JsonObject = job["spec"]
        self.status: JsonObject = dict(job.get("status") or {})
        self.pods = list(self.cluster.pods.of_owner(uid_of(job)))
        self.indexed = self.spec.get("completionMode") == "Indexed"

    def run(self) -> None:
        ended = self._count()
        done = self._finished()
        if done:
            self._delete_active()
        elif (failure := self._failure()) is not None:
            self._finish("Failed", *failure)
        elif self._succeeded():
            self._finish(
                "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
        elif self.spec.get("suspend"):
            self._suspend()
        else:
            self._resume()
            self._run_pods()
        self._write()
        for pod in ended:
            self.controller.release(pod.key)
        self._remove_when_old()

    def _count(self) -> list[PodFacts]:
        """Count pods that have ended and were not counted; the answer is to be released."""
        told = self.status.get("uncountedTerminatedPods") or {}
        known = {*(told.get("succeeded") or ()), *(told.get("failed") or ())}
        ended: list[PodFacts] = []
        fresh: dict[str, list[str]] = {"succeeded": [], "failed": []}
        done = set(_indexes(self.status.get("completedIndexes", "")))
        for pod in self.pods:
            if not pod.finished:
                continue
            whole = self.cluster.get("Pod", *pod.key)
            if whole is None or TRACKING not in (whole["metadata"].get("finalizers") or ()):
                continue
            ended.append(pod)
            if pod.uid in known:
                continue
            kind = "succeeded" if pod.phase == "Succeeded" else "failed"
            fresh[kind].append(pod.uid)
            if kind == "succeeded" and self.indexed:
                done.add(_index(pod))
        for kind, uids in fresh.items():
            if uids:
                self.status[kind] = self.status.get(kind, 0) + len(uids)
        if self.indexed:
            self.status["completedIndexes"] = _ranges(done)
            self.status["succeeded"] = len(done)
        kept = {kind: uids for kind, uids in fresh.items() if uids}
        self.status["uncountedTerminatedPods"] = kept
        return ended

    def _active(self) -> list[PodFacts]:
        return [pod for pod in self.cluster.pods.of_owner(uid_of(self.job)) if pod.active]

    def _finished(self) -> bool:
        return any(
            each.get("type") in {"Complete", "Failed"} and each.get("status") == "True"
            for each in self.status.get("conditions") or ()
        )

    def _succeeded(self) -> bool:
        succeeded = self.status.get("succeeded", 0)
        completions = self.spec.get("completions")
        if completions is None:  # a work queue: one success, and nobody is left at work
            return bool(succeeded) and not self._active()
        return bool(succeeded >= completions)

    def _failure(self) -> tuple[str, str] | None:
        limit = self.spec.get("backoffLimit", 6)
        if self.status.get("failed", 0) > limit:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline, started = self.spec.get("activeDeadlineSeconds"), self.status.get("startTime")
        if deadline is None or not started or self.spec.get("suspend"):
            return None
        left = (moment(started) or 0.0) + deadline - self.cluster.now()
        if left <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        self.controller.add(self.key, after=left)
        return None

    def _finish(self, kind: str, reason: str, text: str) -> None:
        first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        at = self.cluster.timestamp()
        self._delete_active()
        for each in (first, kind):
            self._condition(each, "True", reason, text)
        if kind == "Complete":
            self.status["completionTime"] = at
            self.cluster.events.normal(self.job, "Completed", "Job completed", self.controller.name)
        else:
            self.cluster.events.warning(self.job, reason, text, self.controller.name)

    def _delete_active(self) -> None:
        for pod in self._active():
            self._give_up(pod)

    def _give_up(self, pod: PodFacts) -> None:
        """Delete a pod that is not needed any more; its end is not counted."""
        self.controller.release(pod.key)
        self.cluster.delete_pod(pod)

    def _suspend(self) -> None:
        self._delete_active()
        self._condition("Suspended", "True", "JobSuspended", "Job suspended")
        self.status.pop("startTime", None)

    def _resume(self) -> None:
        if condition({"status": self.status}, "Suspended").get("status") == "True":
            self._condition("Suspended", "False", "JobResumed", "Job resumed")
        self.status.setdefault("startTime", self.cluster.timestamp())
        deadline = self.spec.get("activeDeadlineSeconds")
        if deadline is not None:
            self.controller.add(self.key, after=deadline)

    def _run_pods(self) -> None:
        active = self._active()
        parallelism = self.spec.get("parallelism")
        wanted = 1 if parallelism is None else parallelism
        completions = self.spec.get("completions")
        if completions is not None:
            wanted = min(wanted, completions - self.status.get("succeeded", 0))
        elif self.status.get("succeeded", 0):
            wanted = len(active)  # nobody new once one has succeeded
        for pod in active[max(wanted, 0) :]:
            self._give_up(pod)
        missing = wanted - len(active)
        if missing <= 0 or self._must_wait():
            return
        free = self._free_indexes(active) if self.indexed else []
        for place in range(min(missing, _BURST)):
            self._make(free[place] if self.indexed else None)
        if missing > _BURST:
            self.controller.add(self.key)

    def _must_wait(self) -> bool:
        """Whether pods failed so lately that the next has to wait."""
        failed = self.status.get("failed", 0)
        if not failed:
            return False
        last = max((_ended_at(pod) for pod in self.pods if pod.phase == "Failed"), default=0.0)
        pause = min(_BACKOFF * 2.0 ** min(failed - 1, 20), _LONGEST_BACKOFF)
        left = last + pause - self.cluster.now()
        if left > 0:
            self.controller.add(self.key, after=left)
        return bool(left > 0)

    def _free_indexes(self, active: list[PodFacts]) -> list[int]:
        taken = {_index(pod) for pod in active}
        taken |= set(_indexes(self.status.get("completedIndexes", "")))
        return [n for n in range(self.spec.get("completions") or 0) if n not in taken]

    def _make(self, index: int | None) -> None:
        pod = from_template(self.spec["template"], self.job)
        metadata = pod["metadata"]
        uid, name = uid_of(self.job), self.job["metadata"]["name"]
        metadata["labels"] |= {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]
        if index is not None:
            metadata["generateName"] = f"{name}-{index}-"
            metadata["labels"][INDEX] = str(index)
            metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
            pod["spec"]["hostname"] = f"{name}-{index}"
        made = self.cluster.create("Pod", pod)
        text = f"Created pod: {made['metadata']['name']}"
        self.cluster.events.normal(self.job, "SuccessfulCreate", text, self.controller.name)

    def _condition(self, kind: str, value: str, reason: str, text: str) -> None:
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

    def _write(self) -> None:
        pods = list(self.cluster.pods.of_owner(uid_of(self.job)))
        active = [pod for pod in pods if pod.active]
        numbers = {
            "active": len(active),
            "ready": sum(pod.ready for pod in active),
            "terminating": sum(pod.leaving for pod in pods),
        }
        status = {**self.status, **numbers}
        optional = ("active", "succeeded", "failed", "completedIndexes")
        status = {k: v for k, v in status.items() if v or k not in optional}
        present = self.cluster.get("Job", *self.key)
        if present is not None:
            self.cluster.report(present, status)

    def _remove_when_old(self) -> None:
        seconds = self.spec.get("ttlSecondsAfterFinished")
        if seconds is None or not self._finished():
            return
        ends = [
            moment(each.get("lastTransitionTime")) or 0.0
            for each in self.status.get("conditions") or ()
            if each.get("type") in {"Complete", "Failed"}
        ]
        left = max(ends) + seconds - self.cluster.now()
        if left > 0:
            self.controller.add(self.key, after=left)
        else:
            self.cluster.delete(self.job)


def _ended_at(pod: PodFacts) -> float:
    return moment(pod.changed) or 0.0


def _index(pod: PodFacts) -> int:
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isdigit() else -1


def _indexes(text: str) -> list[int]:
    """The numbers in "0,2-4"."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _ranges(numbers: set[int]) -> str:
    """Numbers as "0,2-4"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _untracked(pod: JsonObject) -> None:
    kept = [each for each in pod["metadata"].get("finalizers") or () if each != TRACKING]
    pod["metadata"]["finalizers"] = kept
    if not kept:
        del pod["metadata"]["finalizers"]
