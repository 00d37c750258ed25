"""The manifests in deploy/ on the lab: kubectl tries and applies them, and they roll out."""

from __future__ import annotations

import yaml

from lab.clients.kubectl import ROOT, Kubectl

DEPLOY = ROOT / "deploy"
#: Kinds of the Prometheus operator, as far as the lab must know them.
OPERATOR = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.monitoring.coreos.com}}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


def test_the_manifests_are_tried_and_roll_out(kubectl: Kubectl) -> None:
    for kind in ("ServiceMonitor", "PrometheusRule"):
        definition = OPERATOR.format(kind=kind, plural=f"{kind.lower()}s")
        kubectl("apply", "-f", "-", stdin=definition)
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    # A dry run makes no namespace, and what is in one needs it.
    for folder in (".", "shadow"):
        kubectl("apply", "-f", str(DEPLOY / folder / "namespace.yaml"))
    kubectl("create", "namespace", "monitoring")

    for folder in (".", "shadow", "monitoring"):
        tried = kubectl.run("apply", "--dry-run=server", "-k", str(DEPLOY / folder))
        assert tried.code == 0, tried.err
        assert "(server dry run)" in tried.out
        kubectl("apply", "-k", str(DEPLOY / folder))

    for folder in (".", "shadow"):
        about = yaml.safe_load((DEPLOY / folder / "deployment.yaml").read_text())["metadata"]
        deployment = f"deployment/{about['name']}"
        kubectl("-n", about["namespace"], "rollout", "status", deployment, "--timeout=120s")
