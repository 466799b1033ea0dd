package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	bars := []Bar{{Label: "restore (1.02x)", Median: 0.9, Min: 0.85, Max: 0.95}, {Label: "inspect (6x)", Median: 7, Min: 6.5, Max: 7.5}, {Label: "binary", Median: 0.5, Min: 0.5, Max: 0.5}}
	got, err := Draw("What was measured", bars)
	if err != nil {
		t.Fatal(err)
	}
	texts := textsIn(t, got)
	for _, want := range []string{"What was measured", "restore (1.02x)", "inspect (6x)", "binary", "measured / target"} {
		if !strings.Contains(texts, want) {
			t.Errorf("A picture must say what is in it: there is no %q in %q", want, texts)
		}
	}
	for _, want := range []string{"#2E7D32", "#C62828"} {
		if !bytes.Contains(bytes.ToUpper(got), []byte(want)) {
			t.Errorf("What meets its target and what does not must look different: there is no %s", want)
		}
	}
	again, err := Draw("What was measured", bars)
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("The same figures must give the same picture, or each run changes the documentation: %v", err)
	}
}

// textsIn returns all texts of a picture; it fails if that is no XML.
func textsIn(t *testing.T, svg []byte) string {
	t.Helper()
	var texts strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			texts.Write(data)
			texts.WriteString("\n")
		}
	}
}
