package marked

import "testing"

func TestReplace(t *testing.T) {
	const begins, ends = "<!-- Written by make x. -->\n", "<!-- End of what make x writes. -->\n"
	cases := map[string]struct {
		reason, document, want string
		fails                  bool
	}{
		"Empty":   {reason: "What is around it stays.", document: "a\n" + begins + ends + "b\n", want: "a\n" + begins + "new\n" + ends + "b\n"},
		"Full":    {reason: "What was there goes.", document: begins + "old\n" + ends, want: begins + "new\n" + ends},
		"None":    {reason: "A person must say where it goes.", document: "a\n", fails: true},
		"NoEnd":   {reason: "Nothing that a person wrote may go.", document: begins + "a\n", fails: true},
		"Another": {reason: "Each command has marks of its own.", document: "<!-- Written by make y. -->\n" + ends, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Replace([]byte(tc.document), "make x", "new\n")
			if string(got) != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s\ngot %q, error %v", tc.reason, got, err)
			}
		})
	}
}
