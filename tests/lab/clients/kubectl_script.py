"""Commands that an API server answers alone: no controller, no scheduler, no kubelet.

Each is a line as one would type it; `<` names a file below that is its standard input. They are run
in order, since each finds what those before it left.
"""

from __future__ import annotations

NODES = """
apiVersion: v1
kind: Node
metadata: {name: kc-one, labels: {zone: a, kubernetes.io/hostname: kc-one}}
status: &status
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions:
  - {type: Ready, status: "True", reason: KubeletReady, message: fine,
     lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}
  addresses: [{type: InternalIP, address: 192.168.0.1}]
  nodeInfo: {architecture: amd64, bootID: b, containerRuntimeVersion: containerd://1,
    kernelVersion: "5", kubeProxyVersion: v1, kubeletVersion: v1.20.0, machineID: m,
    operatingSystem: linux, osImage: Debian, systemUUID: s}
---
apiVersion: v1
kind: Node
metadata: {name: kc-two, labels: {zone: b, kubernetes.io/hostname: kc-two}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: kc, labels: {app: web}}
spec:
  nodeName: kc-one
  containers:
  - name: app
    image: nginx
    resources: {requests: {cpu: 100m, memory: 64Mi}}
    ports: [{containerPort: 80}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: kc}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: app, image: nginx, resources: {requests: {cpu: "1"}}, ports: [{containerPort: 80}]}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, namespace: kc}
data: {a: "1", b: "2"}
"""
EVENT = """
apiVersion: v1
kind: Event
metadata: {name: web.1, namespace: kc}
involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: kc}
reason: Scheduled
message: Successfully assigned kc/web to kc-one
type: Normal
source: {component: default-scheduler}
count: 1
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
"""
FILES = {
    "nodes": NODES,
    "pod": POD,
    "pod-labelled": POD.replace("app: web}", "app: web, tier: front}"),
    "pod-nameless": POD.replace("name: web, ", ""),
    "pod-wrong": POD.replace("name: web, ", "name: Wrong_Name, ").replace("80}", "80000}"),
    "pod-moved": POD.replace("kc-one", "kc-two"),
    "deployment": DEPLOYMENT,
    "deployment-changed": DEPLOYMENT.replace("nginx", "httpd").replace("as: 2", "as: 3"),
    "deployment-wrong": DEPLOYMENT.replace("{labels: {app: shop}}", "{labels: {app: x}}"),
    "config": CONFIG,
    "config-changed": CONFIG.replace('a: "1"', 'a: "9"'),
    "config-less": CONFIG.replace(', b: "2"', ""),
    "event": EVENT,
}  # fmt: skip

SCRIPT = r"""
create namespace kc
create namespace kc
create -f - < nodes
get nodes -l zone
get nodes kc-one kc-two -o wide
get node kc-one -o yaml
apply -f - < pod
apply -f - < pod
apply -f - < pod-labelled
apply -f - < pod
create -f - < pod
create -f - < pod-nameless
create -f - < pod-wrong
apply -f - < pod-moved
get pods -n kc
get pods -n kc -o wide
get pods -n kc -o yaml
get pod web -n kc -o json
get pods -n kc -o name
get pods -n kc -o jsonpath={.items[*].spec.nodeName}
get pods -n kc -o custom-columns=N:.metadata.name,P:.status.phase
get pods -n kc --show-labels
get pods -n kc -L app
get pods -n kc --selector app=web
get pods -n kc --selector app!=web
get pods -n kc --selector app=web,(
get pods -A --field-selector metadata.namespace=kc
get pods -A --field-selector spec.nodeName=kc-one
get pods -n kc --field-selector status.phase=Running
get pods -n kc --field-selector spec.color=red
get pod nothing -n kc
get nothing -n kc
create -f - < event
get events -n kc
get events -n kc -o wide
describe pod web -n kc
describe node kc-one
label pod web -n kc tier=front
label pod web -n kc tier=back
label pod web -n kc tier=back --overwrite
label pod web -n kc tier-
label pod web -n kc bad/key/with=slashes
annotate pod web -n kc note=hello
annotate pod web -n kc note-
patch pod web -n kc -p {"metadata":{"labels":{"p":"1"}}}
patch pod web -n kc --type merge -p {"metadata":{"labels":{"p":"2"}}}
patch pod web -n kc --type json -p [{"op":"remove","path":"/metadata/labels/p"}]
patch pod web -n kc --type json -p [{"op":"remove","path":"/metadata/labels/p"}]
patch pod web -n kc -p {"spec":{"containers":[{"name":"app","image":"httpd"}]}}
patch pod web -n kc -p {"spec":{"nodeName":"kc-two"}}
patch node kc-two -p {"spec":{"unschedulable":true}}
taint node kc-one key=value:NoSchedule
taint node kc-one key=value:NoSchedule
taint node kc-one key=value:NoExecute
taint node kc-one key=other:NoSchedule --overwrite
taint node kc-one key-
taint node kc-one key-
cordon kc-one
cordon kc-one
get nodes kc-one kc-two
uncordon kc-one
uncordon kc-two
apply -f - < deployment
get deployment -n kc
get deployment shop -n kc -o wide
get deployment shop -n kc -o yaml
diff -f - < deployment-changed
apply -f - < deployment-changed
apply -f - < deployment-wrong
get deployment shop -n kc -o yaml
scale deployment shop -n kc --replicas 5
scale deployment shop -n kc --replicas 6 --current-replicas 2
set image deployment/shop -n kc app=nginx:1.20
set resources deployment shop -n kc --limits cpu=2
rollout pause deployment shop -n kc
rollout resume deployment shop -n kc
rollout restart deployment nothing -n kc
describe deployment shop -n kc
apply --server-side -f - < config
apply --server-side -f - < config-changed
apply --server-side --field-manager other -f - < config
apply --server-side --field-manager other --force-conflicts -f - < config
apply --server-side -f - < config-less
get configmap applied -n kc -o yaml
create configmap literal -n kc --from-literal a=b
get configmap literal -n kc
describe configmap literal -n kc
edit configmap literal -n kc
get configmap literal -n kc -o yaml
create secret generic hidden -n kc --from-literal a=b
get secret hidden -n kc
create serviceaccount robot -n kc
create service clusterip front -n kc --tcp 80:8080
get service front -n kc
get service front -n kc -o yaml
describe service front -n kc
create service nodeport door -n kc --tcp 80
create quota limits -n kc --hard pods=2
get quota -n kc
create priorityclass kc-high --value 100
create priorityclass kc-high --value 100
get priorityclass kc-high
create job once -n kc --image busybox
get job once -n kc
create deployment made -n kc --image nginx --dry-run=client -o yaml
create deployment made -n kc --image nginx --dry-run=server -o yaml
get deployment made -n kc
run runner -n kc --image busybox --restart Never
get pod runner -n kc -o yaml
expose deployment shop -n kc --port 80
get all -n kc
api-resources --api-group apps
api-resources --api-group storage.k8s.io --namespaced=false -o name
auth can-i create pods -n kc
wait pod web -n kc --for condition=Ready --timeout 1s
wait pod web -n kc --for delete --timeout 1s
wait pod nothing -n kc --for delete --timeout 1s
replace -f - < config-changed
replace -f - < pod-wrong
delete pod nothing -n kc
delete pod nothing -n kc --ignore-not-found
delete pod web -n kc --wait=false
get pod web -n kc
delete pod web -n kc --grace-period 0 --force
get pod web -n kc
delete deployment shop -n kc --cascade=orphan --wait=false
delete configmap,secret,service -n kc --all --field-selector metadata.name!=kube-root-ca.crt
delete job once -n kc
delete priorityclass kc-high
delete node kc-one kc-two
get --raw /healthz
get --raw /api/v1/namespaces/kc/nothing
"""
#: A program to edit with: it changes one value of the object that `literal` is.
EDITOR = "sed -i /^..a:/s/b$/changed/"


def commands() -> list[tuple[str, str]]:
    """Each line, and what it reads."""
    found = []
    for line in SCRIPT.strip().splitlines():
        words, _, name = line.partition(" < ")
        found.append((words, FILES[name] if name else ""))
    return found
