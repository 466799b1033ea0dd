package install

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	veleroinstall "github.com/vmware-tanzu/velero/pkg/install"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	example = "../../../example/install/"
	image   = "ghcr.io/crossplane-contrib/velero-plugin-for-crossplane:v0.1.0"
	plugin  = "velero-plugin-for-crossplane"
	server  = "velero"
)

// helmValues are those values of Velero's chart that the examples set.
type helmValues struct {
	InitContainers []corev1.Container `json:"initContainers"`
	Configuration  struct {
		BackupStorageLocation []struct {
			Name     string            `json:"name"`
			Provider string            `json:"provider"`
			Bucket   string            `json:"bucket"`
			Default  bool              `json:"default"`
			Config   map[string]string `json:"config"`
		} `json:"backupStorageLocation"`
	} `json:"configuration"`
	Credentials struct {
		ExistingSecret string `json:"existingSecret"`
	} `json:"credentials"`
	SnapshotsEnabled bool                        `json:"snapshotsEnabled"`
	Resources        corev1.ResourceRequirements `json:"resources"`
}

// application is what an Application of Argo CD may have, as far as the example goes. Argo CD's own
// types come with all of Kubernetes.
type application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Project string `json:"project"`
		Source  struct {
			RepoURL        string `json:"repoURL"`
			Chart          string `json:"chart"`
			TargetRevision string `json:"targetRevision"`
			Helm           struct {
				ReleaseName  string     `json:"releaseName"`
				ValuesObject helmValues `json:"valuesObject"`
			} `json:"helm"`
		} `json:"source"`
		Destination struct {
			Server    string `json:"server"`
			Namespace string `json:"namespace"`
		} `json:"destination"`
		SyncPolicy struct {
			Automated struct {
				Prune    bool `json:"prune"`
				SelfHeal bool `json:"selfHeal"`
			} `json:"automated"`
			SyncOptions []string `json:"syncOptions"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

// dataProtectionApplication is what one of OADP may have, as far as the example goes. OADP's own
// types can't be required: its module replaces Velero with a fork.
type dataProtectionApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Configuration struct {
			Velero struct {
				DefaultPlugins []string `json:"defaultPlugins"`
				CustomPlugins  []struct {
					Name  string `json:"name"`
					Image string `json:"image"`
				} `json:"customPlugins"`
				PodConfig struct {
					ResourceAllocations corev1.ResourceRequirements `json:"resourceAllocations"`
				} `json:"podConfig"`
			} `json:"velero"`
		} `json:"configuration"`
		BackupLocations []struct {
			Velero velerov1.BackupStorageLocationSpec `json:"velero"`
		} `json:"backupLocations"`
		SnapshotLocations []struct{} `json:"snapshotLocations"`
	} `json:"spec"`
}

// read decodes the objects of a file. A field that the types lack is an error.
func read(t *testing.T, file string, into ...any) {
	t.Helper()
	b, err := os.ReadFile(example + file)
	if err != nil {
		t.Fatal(err)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	for _, object := range into {
		document, err := documents.Read()
		if err != nil {
			t.Fatalf("cannot read %s: %v", file, err)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Fatalf("cannot decode %s: %v", file, err)
		}
	}
	if rest, err := documents.Read(); !errors.Is(err, io.EOF) {
		t.Fatalf("%s has more objects than %d: %s", file, len(into), rest)
	}
}

// added returns the container that Velero adds to its Deployment for a plugin, with the name that
// the examples have. Velero makes one of the image.
func added(t *testing.T) corev1.Container {
	t.Helper()
	with := veleroinstall.Deployment("velero", veleroinstall.WithPlugins([]string{image})).Spec.Template.Spec.InitContainers
	if len(with) != 1 {
		t.Fatalf("Velero adds %d containers for a plugin", len(with))
	}
	with[0].ImagePullPolicy, with[0].Name = "", plugin

	return with[0]
}

func TestHelm(t *testing.T) {
	var values helmValues
	read(t, "helm-values.yaml", &values)

	if len(values.InitContainers) != 2 {
		t.Fatalf("the values have %d plugins, and not that of a provider and this one", len(values.InitContainers))
	}
	if diff := cmp.Diff(added(t), values.InitContainers[1]); diff != "" {
		t.Errorf("-what Velero adds, +values:\n%s", diff)
	}
	if locations := values.Configuration.BackupStorageLocation; len(locations) != 1 || !locations[0].Default || locations[0].Bucket == "" {
		t.Errorf("the values need a location of backups: %+v", locations)
	}
}

func TestFlux(t *testing.T) {
	var (
		values, want helmValues
		namespace    corev1.Namespace
		repository   sourcev1.HelmRepository
		release      helmv2.HelmRelease
	)
	read(t, "helm-values.yaml", &want)
	read(t, "flux.yaml", &namespace, &repository, &release)

	if err := yaml.UnmarshalStrict(release.Spec.Values.Raw, &values); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("-helm-values.yaml, +flux.yaml:\n%s", diff)
	}
	if got := []string{repository.APIVersion, repository.Kind, release.APIVersion, release.Kind}; !cmp.Equal(got, []string{
		sourcev1.GroupVersion.String(), sourcev1.HelmRepositoryKind, helmv2.GroupVersion.String(), helmv2.HelmReleaseKind,
	}) {
		t.Errorf("flux.yaml has %v", got)
	}
	from := release.Spec.Chart.Spec.SourceRef
	if from.Name != repository.Name || from.Kind != repository.Kind || repository.Namespace != release.Namespace || release.Namespace != namespace.Name {
		t.Errorf("the HelmRelease %s/%s is from %+v, and there is %s/%s", release.Namespace, release.Name, from, repository.Namespace, repository.Name)
	}
}

func TestArgoCD(t *testing.T) {
	var (
		want helmValues
		app  application
	)
	read(t, "helm-values.yaml", &want)
	read(t, "argocd.yaml", &app)

	if diff := cmp.Diff(want, app.Spec.Source.Helm.ValuesObject); diff != "" {
		t.Errorf("-helm-values.yaml, +argocd.yaml:\n%s", diff)
	}
	if app.APIVersion != "argoproj.io/v1alpha1" || app.Kind != "Application" || app.Namespace != "argocd" || app.Spec.Source.Chart != "velero" {
		t.Errorf("argocd.yaml has %+v", app)
	}
}

func TestOADP(t *testing.T) {
	var app dataProtectionApplication
	read(t, "oadp.yaml", &app)

	if app.APIVersion != "oadp.openshift.io/v1alpha1" || app.Kind != "DataProtectionApplication" || app.Namespace != "openshift-adp" {
		t.Errorf("oadp.yaml has %s %s in %s", app.APIVersion, app.Kind, app.Namespace)
	}
	custom := app.Spec.Configuration.Velero.CustomPlugins
	if len(custom) != 1 || custom[0].Name != plugin || custom[0].Image != image {
		t.Errorf("oadp.yaml has the plugins %+v", custom)
	}
	if locations := app.Spec.BackupLocations; len(locations) != 1 || locations[0].Velero.ObjectStorage == nil || !locations[0].Velero.Default {
		t.Errorf("oadp.yaml needs a location of backups: %+v", locations)
	}
}

func TestKustomize(t *testing.T) {
	deployment, want := veleroinstall.Deployment("velero", veleroinstall.WithPlugins([]string{"velero/velero-plugin-for-aws:v1.14.0"})), added(t)
	before := deployment.Spec.Template.Spec.InitContainers
	base, err := json.Marshal(deployment)
	if err != nil {
		t.Fatal(err)
	}
	// The file system of a kustomization is in memory, because kustomize reads no file outside of
	// its folder.
	files := filesys.MakeFsInMemory()
	component, err := os.ReadFile(example + "kustomize/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"/velero/deployment.json":       base,
		"/velero/kustomization.yaml":    []byte("resources: [deployment.json]\ncomponents: [../component]\n"),
		"/component/kustomization.yaml": component,
	} {
		if err := files.WriteFile(name, content); err != nil {
			t.Fatal(err)
		}
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/velero")
	if err != nil {
		t.Fatal(err)
	}
	built, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	var got appsv1.Deployment
	if err := yaml.UnmarshalStrict(built, &got); err != nil {
		t.Fatal(err)
	}

	if got.Name != server || got.Namespace != server {
		t.Errorf("kustomize built %s/%s", got.Namespace, got.Name)
	}
	want.ImagePullPolicy = corev1.PullIfNotPresent
	// kustomize puts the container that a patch adds before those that there are.
	if diff := cmp.Diff(append([]corev1.Container{want}, before...), got.Spec.Template.Spec.InitContainers); diff != "" {
		t.Errorf("-want, +what kustomize built:\n%s", diff)
	}
}
