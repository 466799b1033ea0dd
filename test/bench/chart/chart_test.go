package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDraw(t *testing.T) {
	met, missed := color.RGBA{R: 0x2e, G: 0x7d, B: 0x32, A: 0xff}, color.RGBA{R: 0xc6, G: 0x28, B: 0x28, A: 0xff}
	fast := Bar{Label: "restore (1.02x)", Median: 0.9, Min: 0.85, Max: 0.95}
	slow := Bar{Label: "inspect (2x)", Median: 2, Min: 1.5, Max: 2.5}
	endless := Bar{Label: "inspect (7x)", Median: 7, Min: 6.5, Max: 7.5}
	cases := map[string]struct {
		reason string
		bars   []Bar
		want   map[color.RGBA]bool
	}{
		"Met":    {reason: "A figure that meets its target must be green.", bars: []Bar{fast}, want: map[color.RGBA]bool{met: true, missed: false}},
		"Missed": {reason: "A figure that misses its target must be red.", bars: []Bar{slow}, want: map[color.RGBA]bool{met: false, missed: true}},
		"Cut":    {reason: "A bar that is too long must be cut, and not left out.", bars: []Bar{fast, endless}, want: map[color.RGBA]bool{met: true, missed: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			picture := draw(t, tc.bars)
			got := map[color.RGBA]bool{met: has(picture, met), missed: has(picture, missed)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrawIsOfTheFigures(t *testing.T) {
	bars := []Bar{{Label: "binary (49 MB)", Median: 0.5}}
	other := []Bar{{Label: "binary (50 MB)", Median: 0.5}}
	if !cmp.Equal(draw(t, bars), draw(t, bars)) {
		t.Error("The same figures must give the same picture, or each run changes the documentation.")
	}
	if cmp.Equal(draw(t, bars), draw(t, other)) {
		t.Error("Figures with other labels must give another picture.")
	}
}

// draw returns the picture of the bars; it fails if Draw returns no PNG.
func draw(t *testing.T, bars []Bar) image.Image {
	t.Helper()
	b, err := Draw("What was measured", bars)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}

	return picture
}

// has reports whether a picture has a colour anywhere.
func has(picture image.Image, c color.RGBA) bool {
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if color.RGBAModel.Convert(picture.At(x, y)) == c {
				return true
			}
		}
	}

	return false
}
