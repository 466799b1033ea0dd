package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A kubelet is the part of one that an exec needs: the API server sends it the command for a
// container, and it runs that as a process on this machine.
type kubelet struct {
	clients kubernetes.Interface
	node    string
	// exec runs a command for a pod, given as namespace/name.
	exec func(ctx context.Context, pod string, command []string) run
}

// newKubelet starts a kubelet in a cluster, and creates its Node.
func newKubelet(t *testing.T, c *stack.Cluster, name string, exec func(ctx context.Context, pod string, command []string) run) *kubelet {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.REST())
	must(t, err)
	k := &kubelet{clients: clients, node: name, exec: exec}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	port, err := strconv.ParseInt(text, 10, 32)
	must(t, err)
	node, err := clients.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	_, err = clients.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)

	return k
}

// start reports that the containers of a pod run here.
func (k *kubelet) start(t *testing.T, namespace, name string) {
	t.Helper()
	pods := k.clients.CoreV1().Pods(namespace)
	must(t, pods.Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.node},
	}, metav1.CreateOptions{}))
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	pod.Status.Phase = corev1.PodRunning
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
}

// ServeHTTP answers POST /exec/<namespace>/<pod>/<container>?command=… from the API server.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if len(path) != 4 || path[0] != "exec" {
		http.NotFound(w, r)

		return
	}
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}
	// The client opens one for stdout, one for stderr, and one for the exit code.
	streams := make(chan httpstream.Stream, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s

		return nil
	})
	if conn == nil {
		return // It has been answered.
	}
	defer conn.Close()
	byType := map[string]io.WriteCloser{}
	for len(byType) < 3 {
		select {
		case s := <-streams:
			byType[s.Headers().Get(corev1.StreamType)] = s
		case <-time.After(patience):
			return
		}
	}
	ran := k.exec(r.Context(), path[1]+"/"+path[2], r.URL.Query()["command"])
	status := metav1.Status{Status: metav1.StatusSuccess}
	if ran.code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: fmt.Sprintf("command terminated with exit code %d", ran.code),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(ran.code)}}},
		}
	}
	b, _ := json.Marshal(status)
	for name, content := range map[string][]byte{corev1.StreamTypeStdout: []byte(ran.stdout), corev1.StreamTypeStderr: []byte(ran.stderr), corev1.StreamTypeError: b} {
		_, _ = byType[name].Write(content)
		_ = byType[name].Close()
	}
	// The output is read before the connection ends. The client ends it.
	select {
	case <-conn.CloseChan():
	case <-r.Context().Done():
	}
}
