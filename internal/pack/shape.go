package pack

import "slices"

// A Shape is which fields of an object are packed, and what of each. A nil one is all of them.
type Shape struct {
	// Only are the names of those that are; nil for all.
	Only []string
	// Without are the names of those that are not.
	Without []string
	// Fields are the Shapes of fields that are objects, or lists of objects.
	Fields map[string]*Shape
}

// Cut takes off a value what is not to be packed.
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

// keeps reports whether a field is packed.
func keeps[name string | []byte](s *Shape, field name) bool {
	return s == nil || (s.Only == nil || contains(s.Only, field)) && !contains(s.Without, field)
}

func contains[name string | []byte](names []string, field name) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n == string(field) })
}

// below returns the Shape of a field.
func below[name string | []byte](s *Shape, field name) *Shape {
	if s == nil {
		return nil
	}

	return s.Fields[string(field)]
}
