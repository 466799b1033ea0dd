package pack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func slim() *Shape {
	return &Shape{Without: []string{"data"}, Fields: map[string]*Shape{
		"metadata": {Without: []string{"managedFields"}, Fields: map[string]*Shape{"annotations": {Without: []string{"secret"}}}},
		"spec":     {Only: []string{"group", "versions"}, Fields: map[string]*Shape{"versions": {Only: []string{"name"}}}},
	}}
}

// decoded is an object as Kubernetes decodes it; nil if that fails.
func decoded(document []byte) map[string]any {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil && u.Object == nil {
		return nil
	}

	return u.Object
}

func TestPack(t *testing.T) {
	p := New()
	var objects []Object
	for range minCount + 1 {
		for _, u := range xptest.HostileObjects() {
			objects = append(objects, p.Pack(u.Object))
		}
	}
	zoo := xptest.HostileObjects()
	for n, o := range objects {
		if diff := cmp.Diff(zoo[n%len(zoo)].Object, o.Unpack(nil)); diff != "" {
			t.Errorf("Unpack must return the packed object, even if it consists of shared words: %s", diff)
		}
		if diff := cmp.Diff(zoo[n%len(zoo)].Object, o.Clone().Unpack(nil)); diff != "" {
			t.Errorf("A clone must unpack to the same object: %s", diff)
		}
	}
	if first, last := len(objects[0].data), len(objects[len(objects)-len(zoo)].data); last >= first {
		t.Errorf("Later objects must need less memory than the first: %d bytes at first, %d at last", first, last)
	}
	if o := (Object{}); !o.IsNone() || o.Unpack(nil) != nil || o.Field("kind") != nil || objects[0].IsNone() {
		t.Error("The zero value must be no object.")
	}
}

func TestJSON(t *testing.T) {
	cases := map[string]struct {
		reason   string
		document string
		unsure   bool
	}{
		"Usual":     {reason: "The packer must read JSON from an API server.", document: `{"kind":"K","metadata":{"name":"a","generation":2},"spec":{"group":"g","a":[1,-2,true,false,null,"x",{}]}}`},
		"Space":     {reason: "The packer must read JSON with blanks.", document: " {\n\t\"kind\" : \"K\" , \"spec\" : { \"group\" : [ ] , \"versions\" : { } } } \n"},
		"Escapes":   {reason: "Escaped strings must decode as encoding/json decodes them.", document: `{"kind":"K","a":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00 é","b":"é"}`},
		"Floats":    {reason: "Floats must decode as encoding/json decodes them.", document: `{"kind":"K","a":1.5,"b":-0.0,"c":-0,"d":100.0e-2,"e":9223372036854775807,"f":-9223372036854775808}`},
		"Shape":     {reason: "The shape must drop its fields.", document: `{"kind":"K","data":{"a":[1,{}]},"metadata":{"managedFields":[{}],"annotations":{"secret":"s","x":"y"}},"spec":{"x":1,"group":"g","versions":[{"name":"v","schema":{"a":{}}}]}}`},
		"Twice":     {reason: "The last of two equal fields must win.", document: `{"kind":"K","metadata":{"name":"a","b":1},"metadata":{"name":"c"}}`},
		"BadUTF8":   {reason: "Another decoder must replace invalid UTF-8.", document: "{\"kind\":\"K\",\"a\":\"\xff\"}", unsure: true},
		"Surrogate": {reason: "Another decoder must replace half a surrogate pair.", document: `{"kind":"K","a":"\ud83d"}`, unsure: true},
		"Deep":      {reason: "Kubernetes has no object of this depth.", document: `{"kind":"K","a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", unsure: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := New().JSON([]byte(tc.document), slim())
			if ok == tc.unsure {
				t.Fatalf("%s the packer is sure: %t", tc.reason, ok)
			}
			want := decoded([]byte(tc.document))
			if tc.unsure {
				want = nil
			}
			slim().Cut(want)
			if diff := cmp.Diff(want, got.Unpack(nil)); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
		})
	}
}

func TestField(t *testing.T) {
	long := strings.Repeat(`"0123456789",{"a":[]},`, 9999)
	o, _ := New().JSON([]byte(`{"long":[`+long+`1],"longer":{"a":[`+long+`1]},"a":{"b":"x","b":{"c":"y"}},"l":[1,[2],{"m":{}}],"f":1.5,"i":-7,"n":null,"t":true}`), nil)
	cases := map[string]struct {
		reason string
		path   []string
		want   any
	}{
		"Top":     {reason: "Field must find a field behind any other value.", path: []string{"t"}, want: true},
		"Nested":  {reason: "Field must find a nested field, and the last of two equal ones.", path: []string{"a", "b", "c"}, want: "y"},
		"Int":     {reason: "A number must keep its type.", path: []string{"i"}, want: int64(-7)},
		"List":    {reason: "Field must return a whole list.", path: []string{"l"}, want: []any{int64(1), []any{int64(2)}, map[string]any{"m": map[string]any{}}}},
		"Through": {reason: "A value that is no object has no fields.", path: []string{"f", "x"}},
		"Null":    {reason: "A null value counts as nil.", path: []string{"n"}},
		"Missing": {reason: "A missing field counts as nil.", path: []string{"a", "z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, o.Field(tc.path...)); diff != "" {
				t.Errorf("%s %s", tc.reason, diff)
			}
		})
	}
}

// A value that occurs once does not become a word, and the number of words is bounded: the author
// of a backup must not decide how much memory they take.
func TestWordsAreBounded(t *testing.T) {
	p := New()
	names := map[string]any{}
	for n := range maxWords + 10 {
		names[fmt.Sprint("name", n)] = int64(n)
	}
	long := strings.Repeat("z", maxWord+1)
	names[long] = map[string]any{long: long}
	o := p.Pack(names)
	for range 10 {
		p.Pack(map[string]any{"a": long, "b": "once"})
	}
	if len(p.words.values) > maxWords {
		t.Errorf("the packer keeps %d words", len(p.words.values))
	}
	if _, ok := p.words.numbers[long]; ok {
		t.Error("A long string must not become a word.")
	}
	if diff := cmp.Diff(names, o.Unpack(nil)); diff != "" {
		t.Errorf("Unpack must return every name: %s", diff)
	}
}

func TestWeight(t *testing.T) {
	p := New()
	p.Pack(map[string]any{"a": []any{map[string]any{}, map[string]any{}}})
	light := p.Weight()
	many := make([]any, 1000)
	for n := range many {
		many[n] = map[string]any{}
	}
	p.Pack(map[string]any{"a": many})
	if heavy := p.Weight(); heavy < 1000*weightObject || light >= 1000 {
		t.Errorf("The weight must count memory, not the length of JSON: %d and %d", light, heavy)
	}
}

// FuzzPack packs any JSON object and checks that unpacking returns the same.
func FuzzPack(f *testing.F) {
	for _, u := range xptest.HostileObjects() {
		b, err := u.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"kind":"K","a":{"a":{"a":"a"}},"b":[[],{},[{}],1e300,-1,9223372036854775807,"é\u0000"]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		want := decoded(document)
		if want == nil {
			return
		}
		p := New()
		first := p.Pack(want)
		for range minCount {
			p.Pack(want)
		}
		for _, o := range []Object{first, p.Pack(want)} {
			if diff := cmp.Diff(want, o.Unpack(nil)); diff != "" {
				t.Fatal(diff)
			}
			for name, value := range want {
				if diff := cmp.Diff(value, o.Field(name)); diff != "" {
					t.Fatalf("the field %q: %s", name, diff)
				}
			}
		}
	})
}

// FuzzSlim checks that packing from JSON equals decoding as Kubernetes does, removing fields and
// packing the rest.
func FuzzSlim(f *testing.F) {
	for n, u := range xptest.HostileObjects() {
		if n%2 == 0 {
			continue
		}
		b, err := json.MarshalIndent(u, "", " ")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, document := range []string{
		``, `[]`, `{"kind":"K","a":{"b":[1,`, `{"kind":"K"}{}`, `{"kind":"K","a":[1,]}`, `{"kind":"K" "a":1}`, "{\"kind\":\"K\",\"a\":\"\n\"}", `{"kind":"K","a":"\x"}`,
		`{"kind":"K","data":{"a":tru}}`, `{"kind":"K","a":9223372036854775808}`, `{"kind":"K","a":1e3}`, `{"kind":"K","a":01}`, `{"kind":"K","a":--1}`, `{"kind":"K","a":1.5e999}`,
		`{"kind":"K","data":{"a":"b"},"metadata":{"managedFields":[{}],"annotations":{"secret":"s"}},"spec":{"group":1.5,"x":[[{"name":1}]],"versions":[[{"name":1,"y":2}]]}}`,
		`{"kind":"K","metadata":1,"spec":"\ud800\u0041","spec":{"Group":-0,"group":1e2}}`, "{\"kind\":\"K\",\"\xc3\x28\":\"\xe2\x82\xac\"}",
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		o, ok := New().JSON(document, slim())
		if !ok {
			return
		}
		if !json.Valid(document) {
			t.Fatalf("the packer accepts invalid JSON: %q", document)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(document); err != nil && u.Object == nil {
			t.Fatalf("another decoder refuses %q: %v", document, err)
		}
		slim().Cut(u.Object)
		if diff := cmp.Diff(u.Object, o.Unpack(nil)); diff != "" {
			t.Fatal(diff)
		}
	})
}
