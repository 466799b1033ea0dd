package xptest

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
)

// The layout of the backup of Many: a tree is an XR with ten MRs and the objects around it.
const (
	perTree      = 15 // XR, 10 MRs, 2 connection Secrets, a claim or a ConfigMap, an Event.
	perNamespace = 20 // trees
	perRevision  = 100
	composed     = 10
	noise        = 30 // CRDs of other projects.
)

// Many writes a backup with this number of objects, at least 100, as Velero writes it. It has XRs
// of both schemas, half of them with claims, each with ten MRs, their connection Secrets,
// ConfigMaps and Events, and the XRDs, Compositions, CompositionRevisions and CRDs of all. Objects
// are as long as real ones, with managedFields and status. In one tree of fifty an MR has no
// external-name, in one of seventy an MR is missing. The same number gives the same backup.
func Many(to io.Writer, objects int) error {
	z := gzip.NewWriter(to)
	m := &many{tar: tar.NewWriter(z), left: objects}
	m.file("metadata/version", []byte("1.1.0\n"))
	m.platform(objects / perTree)
	for tree := 0; m.left >= perTree; tree++ {
		m.tree(tree)
	}
	for n := 0; m.left > 0; n++ {
		m.event(replacer(n, "team-0", "Environment", "platform.example.org/v1alpha1"), "team-0", "left-"+strconv.Itoa(n))
	}
	for _, w := range []io.Closer{m.tar, z} {
		if err := w.Close(); err != nil && m.err == nil {
			m.err = err
		}
	}

	return m.err
}

// many writes a backup.
type many struct {
	tar  *tar.Writer
	left int
	err  error
}

func (m *many) file(name string, content []byte) {
	if m.err != nil {
		return
	}
	if m.err = m.tar.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content)), Mode: 0o755}); m.err == nil {
		_, m.err = m.tar.Write(content)
	}
}

// object writes an object twice, once below its version.
func (m *many) object(resource, version, namespace, name, content string) {
	m.left--
	scope := "cluster"
	if namespace != "" {
		scope = "namespaces/" + namespace
	}
	m.file("resources/"+resource+"/"+scope+"/"+name+".json", []byte(content))
	m.file("resources/"+resource+"/"+version+"-preferredversion/"+scope+"/"+name+".json", []byte(content))
}

// platform writes what all trees share.
func (m *many) platform(trees int) {
	kinds := []struct{ group, kind, scope string }{
		{"platform.example.org", "Environment", "Namespaced"},
		{"legacy.example.org", "XEnvironment", "Cluster"},
		{"legacy.example.org", "Environment", "Namespaced"},
	}
	for _, kind := range managedKinds {
		kinds = append(kinds, struct{ group, kind, scope string }{"cloud.m.example.org", kind, "Namespaced"},
			struct{ group, kind, scope string }{"cloud.example.org", kind, "Cluster"})
	}
	for n := range noise {
		kinds = append(kinds, struct{ group, kind, scope string }{"other.example.net", "Thing" + strconv.Itoa(n), "Namespaced"})
	}
	var fields strings.Builder
	for n := range 200 {
		fmt.Fprintf(&fields, `"field%d":{"description":"What field %d is for, as a provider's documentation has it.","type":"string"},`, n, n)
	}
	schema := strings.TrimSuffix(fields.String(), ",")
	for _, k := range kinds {
		plural := strings.ToLower(k.kind) + "s"
		name := plural + "." + k.group
		m.object("customresourcedefinitions.apiextensions.k8s.io", "v1", "", name, strings.NewReplacer("$group", k.group, "$kind", k.kind, "$scope", k.scope,
			"$plural", plural, "$name", name, "$uid", uid(name), "$fields", schema).Replace(manyCRD))
	}
	for _, k := range kinds[:2] {
		plural, claims := strings.ToLower(k.kind)+"s", ""
		version, scope := "v2", `"scope":"Namespaced",`
		if k.kind[0] == 'X' {
			version, scope, claims = "v1", "", `"claimNames":{"kind":"Environment","plural":"environments"},`
		}
		name := plural + "." + k.group
		r := strings.NewReplacer("$version", version, "$group", k.group, "$kind", k.kind, "$scope", scope, "$plural", plural, "$name", name, "$claims",
			claims, "$uid", uid(name))
		m.object("compositeresourcedefinitions.apiextensions.crossplane.io", version, "", name, r.Replace(manyXRD))
		m.object("compositions.apiextensions.crossplane.io", "v1", "", plural, composition("Composition", plural, k.group, k.kind, 0))
		for n := range trees/perRevision + 1 {
			m.object("compositionrevisions.apiextensions.crossplane.io", "v1", "", plural+"-"+strconv.Itoa(n),
				composition("CompositionRevision", plural, k.group, k.kind, n+1))
		}
	}
	for n := range trees/perNamespace + 1 {
		name := "team-" + strconv.Itoa(n)
		m.object("namespaces", "v1", "", name, strings.NewReplacer("$name", name, "$uid", uid(name)).Replace(manyNamespace))
	}
}

// composition returns a Composition, or its revision of that number.
func composition(kind, name, group, of string, revision int) string {
	full, more, controller := name, "", ""
	if revision > 0 {
		full, more = name+"-"+strconv.Itoa(revision-1), `"revision":`+strconv.Itoa(revision)+","
		controller = `"ownerReferences":[{"apiVersion":"apiextensions.crossplane.io/v1","blockOwnerDeletion":true,"controller":true,"kind":"Composition","name":"` +
			name + `","uid":"` + uid("Composition"+name) + `"}],`
	}
	var resources strings.Builder
	for n := range composed {
		fmt.Fprintf(&resources, `{"base":{"apiVersion":"cloud.example.org/v1alpha1","kind":"%s","spec":{"forProvider":{"region":"eu-central","sizeGB":20,`+
			`"tags":{"team":"platform","costCentre":"4711"}}}},"name":"resource-%d","patches":[{"fromFieldPath":"spec.region","toFieldPath":`+
			`"spec.forProvider.region","type":"FromCompositeFieldPath"},{"fromFieldPath":"spec.cidr","toFieldPath":"spec.forProvider.cidr",`+
			`"transforms":[{"string":{"fmt":"%%s-%d","type":"Format"},"type":"string"}],"type":"FromCompositeFieldPath"}]},`, managedKinds[n%len(managedKinds)], n, n)
	}

	return strings.NewReplacer("$kind", kind, "$of", of, "$group", group, "$name", full, "$composition", name, "$owner", controller, "$uid", uid(kind+full),
		"$revision", more, "$resources", strings.TrimSuffix(resources.String(), ",")).Replace(manyComposition)
}

var managedKinds = []string{"Bucket", "Database", "Network", "Role"} //nolint:gochecknoglobals // It is a constant list.

// replacer fills in what the objects of a tree share.
func replacer(tree int, namespace, kind, apiVersion string) *strings.Replacer {
	name := "env-" + strconv.Itoa(tree)

	return strings.NewReplacer("$namespace", namespace, "$tree", name, "$xruid", uid(apiVersion+kind+name), "$kind", kind, "$apiVersion", apiVersion,
		"$n", strconv.Itoa(tree), "$at", fmt.Sprintf("2026-%02d-%02dT%02d:%02d:08Z", tree%12+1, tree%28+1, tree%24, tree%60),
		"$revision", strconv.Itoa(tree/perRevision))
}

// tree writes an XR and its objects. Every other XR has the schema of Crossplane v1 and a claim.
func (m *many) tree(n int) {
	namespace := "team-" + strconv.Itoa(n/perNamespace)
	claimed := n%2 == 1
	apiVersion, kind, managed, xrIn, field := "platform.example.org/v1alpha1", "Environment", "cloud.m.example.org", namespace, `"namespace":"`+namespace+`",`
	if claimed {
		apiVersion, kind, managed, xrIn, field = "legacy.example.org/v1alpha1", "XEnvironment", "cloud.example.org", "", ""
	}
	r := replacer(n, namespace, kind, apiVersion)
	var refs, well, tree []string
	for c := range composed {
		mr := managedKinds[c%len(managedKinds)]
		name := fmt.Sprintf("env-%d-%012x", n, number(n, c)&0xffffffffffff)
		ref := `{"apiVersion":"` + managed + `/v1alpha1","kind":"` + mr + `","name":"` + name + `"`
		refs = append(refs, ref+"}")
		well = append(well, strings.Replace(ref, `","kind"`, `","conditions":"Ready,Synced","kind"`, 1)+"}")
		plural := strings.ToLower(mr) + "s." + managed
		tree = append(tree, `"`+plural+"/"+xrIn+"/"+name+`"`)
		if n%70 == 69 && c == 3 {
			m.event(r, namespace, "missing-"+name)

			continue
		}
		m.managed(r, n, c, managed, plural, xrIn, field, name)
	}
	list := strings.NewReplacer("$refs", strings.Join(refs, ","), "$well", strings.Join(well, ","), "$list", strings.Join(tree, ","))
	if claimed {
		m.object("xenvironments.legacy.example.org", "v1alpha1", "", fmt.Sprintf("env-%d", n), list.Replace(r.Replace(manyLegacyXR)))
		m.object("environments.legacy.example.org", "v1alpha1", namespace, fmt.Sprintf("env-%d", n),
			strings.ReplaceAll(list.Replace(r.Replace(manyClaim)), "$uid", uid("claim"+strconv.Itoa(n))))
	} else {
		m.object("environments.platform.example.org", "v1alpha1", namespace, fmt.Sprintf("env-%d", n), list.Replace(r.Replace(manyXR)))
		m.object("configmaps", "v1", namespace, fmt.Sprintf("settings-%d", n), strings.ReplaceAll(r.Replace(manyConfigMap), "$uid", uid("map"+strconv.Itoa(n))))
	}
	m.event(r, namespace, fmt.Sprintf("env-%d.%016x", n, number(n, composed)))
}

// managed writes an MR, and its connection Secret if it is a database.
func (m *many) managed(r *strings.Replacer, tree, n int, group, plural, namespace, field, name string) {
	kind := managedKinds[n%len(managedKinds)]
	publishes, self := "", uid(name)
	secret := fmt.Sprintf("env-%d-%d", tree, n)
	if kind == "Database" && n < 2*len(managedKinds) {
		publishes = `,"writeConnectionSecretToRef":{"name":"` + secret + `"`
		in := namespace
		if namespace == "" {
			in = "team-" + strconv.Itoa(tree/perNamespace)
			publishes += `,"namespace":"` + in + `"`
		}
		publishes += "}"
		m.object("secrets", "v1", in, secret, strings.NewReplacer("$secret", secret, "$mr", name, "$owner", self, "$in", in, "$group", group,
			"$uid", uid("secret"+name)).Replace(r.Replace(manySecret)))
	}
	external := fmt.Sprintf("%s-%012x", strings.ToLower(kind), number(tree, n+100)&0xffffffffffff)
	annotation := `"crossplane.io/external-name":"` + external + `",`
	if tree%50 == 49 && n == 0 {
		annotation = ""
	}
	m.object(plural, "v1alpha1", namespace, name, strings.NewReplacer("$group", group, "$mrkind", kind, "$external", external, "$annotation", annotation,
		"$field", field, "$mr", name, "$uid", self, "$c", strconv.Itoa(n), "$publishes", publishes).Replace(r.Replace(manyMR)))
}

func (m *many) event(r *strings.Replacer, namespace, name string) {
	m.object("events", "v1", namespace, name, strings.NewReplacer("$event", name, "$uid", uid("event"+name)).Replace(r.Replace(manyEvent)))
}

// uid returns a UID that depends on the seed only.
func uid(seed string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(seed)) // It never fails.
	b := h.Sum(nil)

	return fmt.Sprintf("%x-%x-4%x-8%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func number(tree, n int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, tree, " ", n)

	return h.Sum64()
}
