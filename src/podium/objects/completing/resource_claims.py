"""The claims that the controller for resource claims would make from templates.

Only for pods of manifests: a pod with a uid of its own came from a cluster, where the controller
has made its claims, or has not. Names are `<pod>-<entry>`, so that the same manifests always give
the same claims; claims that exist already are not made again.

Upstream: pkg/controller/resourceclaim, Kubernetes v1.36.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.objects.kinds.devices import ClaimMeta, ResourceClaim, ResourceClaimTemplate
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.pod import Pod, PodResourceClaimStatus
from podium.objects.kinds.registry import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from podium.objects.reading.collection import Objects

#: The entry of `spec.resourceClaims` that a claim was made for.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def with_claims_of_templates(objects: Objects) -> Objects:
    """The collection with a claim for each entry of a pod that names a template."""
    templates = {each.key: each for each in objects.of(RESOURCE_CLAIM_TEMPLATE)}
    if not templates:
        return objects
    objects = objects.copied()
    known = {each.key for each in objects.of(RESOURCE_CLAIM)}
    pods = objects.of(POD)
    for index, pod in enumerate(pods):
        if pod.spec.resource_claims and pod.metadata.uid == pod.key:
            made, pods[index] = _make_claims(pod, templates)
            where = objects.where(POD, index)
            for claim in made:
                if claim.key not in known:
                    objects.add(RESOURCE_CLAIM, claim, where)
    return objects


def _make_claims(
    pod: Pod, templates: dict[str, ResourceClaimTemplate]
) -> tuple[list[ResourceClaim], Pod]:
    """The claims of a pod, and the pod with their names in its status."""
    statuses = list(pod.status.resource_claim_statuses or ())
    noted = {status.name for status in statuses}
    claims = []
    for entry in pod.spec.resource_claims or ():
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if entry.resource_claim_name is not None or template is None or entry.name in noted:
            continue
        claim = claim_of(template, pod, entry.name, f"{pod.name}-{entry.name}")
        claims.append(claim)
        statuses.append(PodResourceClaimStatus(entry.name, claim.name))
    status = replace(pod.status, resource_claim_statuses=statuses or None)
    return claims, replace(pod, status=status)


def claim_of(template: ResourceClaimTemplate, pod: Pod, entry: str, name: str) -> ResourceClaim:
    """The claim made from a template for one entry of a pod, which controls it."""
    owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
    about = template.spec.metadata
    metadata = ClaimMeta(
        name=name,
        namespace=pod.namespace,
        uid=f"{pod.namespace}/{name}",
        labels=about.labels,
        annotations={**(about.annotations or {}), POD_CLAIM_NAME: entry},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
