package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/pages"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A reader follows the pages one after the other, in a cluster that is lost and replaced as they
// describe it.
type reader struct {
	*suite

	// programs is the folder of kubectl, velero and the plugin, and root the one of the repository.
	// The commands of a page run in dir.
	programs, root, dir string
	// team has the environments that the pages describe.
	team *tenant
	// replacements are the commands that can't run here as they are, by command.
	replacements map[string]pages.Replacement
	// others are the clusters beside the target, by name.
	others map[string]*stack.Cluster
}

// TestDocs runs every command of the README, of docs and of example as it is written there.
// pages.Replacements has the commands that can't run here, each with the reason.
func TestDocs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	root, err := build.Root()
	must(t, err)
	all, err := pages.All(root)
	must(t, err)
	set, err := build.Ensure(ctx, os.Stderr, append(stack.Programs(stack.Options{Crossplane: stack.V2, Plugin: true}), "kubectl")...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	r := &reader{
		suite: &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: stack.V2}, programs: t.TempDir(), root: root,
		team: &tenant{Platform: drill.Platform{Crossplane: stack.V2, Namespace: "team-a"}}, replacements: pages.Replacements(), others: map[string]*stack.Cluster{},
	}
	r.install(t, set)
	r.start(t, "first")
	list := scenes()
	for _, p := range all { // The commands of a page without a scene just work.
		if !slices.ContainsFunc(list, func(s scene) bool { return s.page == p.Name }) {
			list = append(list, scene{page: p.Name})
		}
	}
	for _, s := range list {
		i := slices.IndexFunc(all, func(p pages.Page) bool { return p.Name == s.page })
		if i < 0 {
			t.Errorf("There is no page %s with commands", s.page)

			continue
		}
		t.Run(s.page, func(t *testing.T) { r.read(t, s, all[i]) })
	}
}

// install installs the programs that the pages name. There is no kubelet to execute a command in
// Velero's Pod, so it runs here, as the administrator.
func (r *reader) install(t *testing.T, set build.Set) {
	t.Helper()
	kubectl := `#!/bin/bash
args="$*"
args="${args/exec -i /exec }"
in="exec -n velero deploy/velero -- /plugins/velero-plugin-for-crossplane"
case "$args" in
"$in"*)
	while [ "$1" != -- ]; do shift; done
	set -- "${@:3}"
	exec %[2]q "$@"
	;;
esac
exec %[1]q "$@"
`
	for name, script := range map[string]string{
		"kubectl": fmt.Sprintf(kubectl, set["kubectl"].Path, set["plugin"].Path),
		"velero":  fmt.Sprintf("#!/bin/bash\nexec %q --namespace=velero \"$@\"\n", set[stack.Velero].Path),
	} {
		must(t, os.WriteFile(filepath.Join(r.programs, name), []byte(script), 0o755)) //nolint:gosec // It is a program.
	}
	must(t, os.Symlink(set["plugin"].Path, filepath.Join(r.programs, "velero-plugin-for-crossplane")))
}

// start starts a cluster, which becomes the target. It has Crossplane, the function, the provider
// and Velero, and nothing of the platform.
func (r *reader) start(t *testing.T, name string) {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), r.host, stack.Options{Name: name, Crossplane: r.version, Plugin: true, VeleroArgs: oftener})
	must(t, err)
	r.target = c
}

// change makes another cluster the target. The last one goes on.
func (r *reader) change(t *testing.T, name string) {
	t.Helper()
	r.others[r.target.Name()] = r.target
	if c, ok := r.others[name]; ok {
		r.target = c
	} else {
		r.start(t, name)
	}
}

// read runs the commands of a page.
func (r *reader) read(t *testing.T, s scene, page pages.Page) {
	t.Helper()
	r.dir = t.TempDir()
	entries, err := os.ReadDir(r.root)
	must(t, err)
	for _, e := range entries {
		must(t, os.Symlink(filepath.Join(r.root, e.Name()), filepath.Join(r.dir, e.Name())))
	}
	r.happen(t, s.begin)
	meanwhile := maps.Clone(s.meanwhile)
	for _, b := range page.Blocks {
		var printed strings.Builder
		for _, command := range b.Commands {
			r.happen(t, meanwhile[command])
			delete(meanwhile, command)
			printed.WriteString(r.follow(t, fmt.Sprintf("%s:%d", page.Name, b.Line), command, s.codes[command]))
		}
		if missing := pages.Missing(b.Output, printed.String()); missing != "" {
			t.Errorf("%s:%d has this output: %s\nThe output is:\n%s", page.Name, b.Line, missing, printed.String())
		}
	}
	for command := range meanwhile {
		t.Errorf("%s does not have the command before which something happens: %s", page.Name, command)
	}
	r.happen(t, s.end)
}

// happen causes an event that no command of a page causes.
func (r *reader) happen(t *testing.T, e event) {
	t.Helper()
	if e.lost != "" {
		must(t, r.target.Destroy())
		r.start(t, e.lost)
	}
	if e.in != "" {
		r.change(t, e.in)
	}
	if e.ended != "" {
		must(t, r.others[e.ended].Destroy())
	}
	if e.restarted {
		must(t, r.target.RestartVelero(t.Context()))
	}
	if e.forgotten {
		r.forget(t)
	}
	for _, command := range e.run {
		r.do(t, command)
	}
}

// made matches a command that creates a Restore, with the Restore's name.
var made = regexp.MustCompile(`^velero restore create ([a-z][-a-z0-9]*)`)

// makeWay deletes a Restore that has the name that a command gives to a new one: the pages choose
// names independently.
func (r *reader) makeWay(t *testing.T, command string) {
	t.Helper()
	name := made.FindStringSubmatch(command)
	if name == nil {
		return
	}
	if _, err := get(t.Context(), r.target, veleroRestore, "velero", name[1]); err != nil {
		return
	}
	_, err := drill.AwaitRestore(t.Context(), r.target, name[1])
	must(t, err)
	r.do(t, "kubectl delete restore.velero.io "+name[1]+" -n velero --timeout=1m")
}

// follow runs a command, or the one in place of it, and returns its output.
func (r *reader) follow(t *testing.T, at, command string, code int) string {
	t.Helper()
	run := command
	if other, ok := r.replacements[command]; ok {
		if run = other.Run; run == "" {
			return ""
		}
	}
	r.makeWay(t, command)
	began := time.Now()
	out, got, err := r.shell(t.Context(), run)
	if err == nil && got != code {
		err = fmt.Errorf("it ended with %d and not %d:\n%s", got, code, out)
	}
	if err != nil {
		const state = "for name in $(kubectl get restores.velero.io -n velero -o name); do velero restore describe ${name#*/} --details; velero restore logs ${name#*/} | " +
			"grep -E 'level=(error|warning)'; done; velero-plugin-for-crossplane validate"
		of, _, _ := r.shell(t.Context(), state)
		t.Errorf("%s: %s: %v\n%s", at, run, err, of)

		return out
	}
	t.Logf("%s: %s: %d after %s", at, run, got, time.Since(began).Round(time.Millisecond))

	return out
}

// shell runs a command as a user's shell would.
func (r *reader) shell(ctx context.Context, command string) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience) // Some commands wait for three minutes.
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.WaitDelay = r.dir, time.Second
	cmd.Env = append(os.Environ(), "PATH="+r.programs+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+r.target.Kubeconfig(),
		"VELERO_NAMESPACE=velero", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("cannot run %s: %w\n%s", command, errors.Join(err, ctx.Err()), out)
	}

	return string(out), cmd.ProcessState.ExitCode(), nil
}

// do runs a command that no page has, and that must succeed.
func (r *reader) do(t *testing.T, command string) {
	t.Helper()
	out, code, err := r.shell(t.Context(), command)
	must(t, err)
	if code != 0 {
		t.Fatalf("%s ended with %d:\n%s", command, code, out)
	}
}

// forget removes the namespace from the cluster, not from the cloud, as if etcd had lost it.
func (r *reader) forget(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	must(t, r.target.Stop(stack.CloudProvider))
	r.do(t, "kubectl delete namespace "+r.team.Namespace+" --wait=false")
	const take = "for mr in $(kubectl get managed -n %[1]s -o name); do kubectl patch $mr -n %[1]s --type merge -p '{\"metadata\":{\"finalizers\":null}}'; done; " +
		"! kubectl get namespace %[1]s"
	r.eventually(t, "the namespace "+r.team.Namespace+" to be gone", func(ctx context.Context) error {
		out, code, err := r.shell(ctx, fmt.Sprintf(take, r.team.Namespace))
		if err != nil || code != 0 {
			return errors.Join(err, errors.New("it is still there: "+out))
		}

		return nil
	})
	must(t, r.target.Start(ctx, stack.CloudProvider))
}
