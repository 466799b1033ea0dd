package pack

import "slices"

// A Shape selects fields of an object. A nil Shape selects all.
type Shape struct {
	// Only are the selected fields; nil for all.
	Only []string
	// Without are fields that are left out.
	Without []string
	// Fields are the Shapes of fields that are objects, or lists of objects.
	Fields map[string]*Shape
}

// Cut removes the fields that the shape does not select, in place.
func (s *Shape) Cut(value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			s.Cut(entry)
		}
	case map[string]any:
		for name, field := range v {
			if keeps(s, name) {
				s.Fields[name].Cut(field)
			} else {
				delete(v, name)
			}
		}
	}
}

func keeps[name string | []byte](s *Shape, field name) bool {
	return s == nil || (s.Only == nil || contains(s.Only, field)) && !contains(s.Without, field)
}

func contains[name string | []byte](names []string, field name) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n == string(field) })
}

func below[name string | []byte](s *Shape, field name) *Shape {
	if s == nil {
		return nil
	}

	return s.Fields[string(field)]
}
