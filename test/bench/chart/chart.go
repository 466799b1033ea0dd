// Package chart draws measured figures beside their targets.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A Bar is one figure, as a fraction of its target: 1 meets it exactly.
type Bar struct {
	Label            string
	Median, Min, Max float64
}

// bound is the longest bar.
const bound = 3

// Draw returns a PNG picture with a bar for each figure, from top to bottom, and a line at the
// targets. Longer bars are cut. The picture is no SVG: that has no fonts, and if the viewer's fonts
// are wider, the bars hide the end of each label.
func Draw(title string, bars []Bar) ([]byte, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "measured / target"
	p.X.Min, p.X.Max = 0, bound
	p.Y.Min, p.Y.Max = -1, float64(len(bars))
	met, missed := color.RGBA{R: 0x2e, G: 0x7d, B: 0x32, A: 0xff}, color.RGBA{R: 0xc6, G: 0x28, B: 0x28, A: 0xff}
	var ticks []plot.Tick
	for i, b := range bars {
		y := float64(len(bars) - 1 - i)
		ticks = append(ticks, plot.Tick{Value: y, Label: b.Label})
		c := met
		if b.Median > 1 {
			c = missed
		}
		if err := addLine(p, c, vg.Points(12), plotter.XYs{{X: 0, Y: y}, {X: math.Min(b.Median, bound), Y: y}}); err != nil {
			return nil, err
		}
		if b.Max > b.Min {
			if err := addLine(p, color.Black, vg.Points(1.5), plotter.XYs{{X: math.Min(b.Min, bound), Y: y}, {X: math.Min(b.Max, bound), Y: y}}); err != nil {
				return nil, err
			}
		}
	}
	if err := addLine(p, color.Black, vg.Points(1), plotter.XYs{{X: 1, Y: -1}, {X: 1, Y: float64(len(bars))}}); err != nil {
		return nil, err
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Length = 0

	w, err := p.WriterTo(vg.Length(32)*vg.Centimeter, vg.Length(len(bars)+3)*0.75*vg.Centimeter, "png")
	if err != nil {
		return nil, fmt.Errorf("cannot draw the chart: %w", err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("cannot write the chart: %w", err)
	}

	return out.Bytes(), nil
}

func addLine(p *plot.Plot, c color.Color, width vg.Length, points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("cannot draw a line of the chart: %w", err)
	}
	line.Color, line.Width = c, width
	p.Add(line)

	return nil
}
