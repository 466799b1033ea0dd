package hooks

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

const (
	// maxShown limits the lines of a live view: those above the terminal's top cannot be redrawn.
	maxShown = 8
	// frameInterval is the time between two frames.
	frameInterval = 100 * time.Millisecond
	// barWidth is the columns of a bar. A terminal below narrow columns has a shorter bar or none.
	barWidth, narrow = 30, 84
	// messageWidth is the columns of the text beside a bar.
	messageWidth = 42
)

// A liveView redraws a progress bar, and what is waited for, in place.
type liveView struct {
	out     io.Writer
	writer  progress.Writer
	adopted *progress.Tracker
	ended   chan struct{}
	width   int
}

func newLiveView(out io.Writer) *liveView {
	out = rawWriter(out)
	v := &liveView{out: out, writer: progress.NewWriter(), adopted: &progress.Tracker{AutoStopDisabled: true}}
	v.writer.SetOutputWriter(out)
	v.writer.SetUpdateFrequency(frameInterval)
	v.writer.SetSortBy(progress.SortByNone)
	v.writer.SetTrackerPosition(progress.PositionRight)
	v.writer.SetMessageLength(messageWidth)
	style := progress.StyleDefault
	style.Visibility.ETA, style.Visibility.Percentage, style.Visibility.Speed = false, false, false
	style.Visibility.TrackerOverall, style.Visibility.Value = false, false
	style.Options.Separator = "  "
	style.Options.TimeInProgressPrecision, style.Options.TimeDonePrecision = time.Second, time.Second
	if isColourful() {
		style.Colors.Message = text.Colors{text.Bold}
	}
	style.Renderer.TrackerDeterminate = bar
	style.Renderer.TrackerIndeterminate = func(width int) string { return bar(0, 1, width) }
	v.writer.SetStyle(style)
	v.width, _ = widthOf(out)
	v.start()

	return v
}

// start draws frames for a terminal of the view's width.
func (v *liveView) start() {
	v.writer.SetTerminalWidth(v.width)
	v.writer.SetTrackerLength(max(barWidth-max(narrow-v.width, 0), 0))
	ended := make(chan struct{})
	v.ended = ended
	go func() {
		defer close(ended)
		v.writer.Render()
	}()
}

// stop draws the last frame. The library ignores Stop before its first frame, so stop repeats it.
func (v *liveView) stop() {
	for {
		v.writer.Stop()
		select {
		case <-v.ended:
			return
		case <-time.After(frameInterval):
		}
	}
}

// resize follows the terminal's width. The library cannot change it while it draws.
func (v *liveView) resize() {
	width, _ := widthOf(v.out)
	if width == v.width {
		return
	}
	v.stop()
	v.width = width
	v.start()
}

func (v *liveView) show(f findings) {
	v.resize()
	if v.writer.Length() == 0 {
		v.writer.AppendTracker(v.adopted)
	}
	adopted, all := len(f.adopted), len(f.adopted)+f.roots
	v.adopted.UpdateMessage(progressText(adopted, all))
	v.adopted.UpdateTotal(int64(all))
	v.adopted.SetValue(int64(adopted))
	lines := f.lines()
	var pinned []string
	for n, l := range lines {
		if n == maxShown {
			pinned = append(pinned, fmt.Sprintf("and %d more", len(lines)-n))

			break
		}
		pinned = append(pinned, v.fit(reason.Clean(l.text)))
	}
	v.writer.SetPinnedMessages(pinned...)
}

// fit cuts a line to the terminal's width: a wrapped line would break the redraw.
func (v *liveView) fit(line string) string {
	if v.width == 0 {
		return line
	}

	return text.Snip(line, v.width-1, "…")
}

// close ends the view. Later output starts on a new line.
func (v *liveView) close() {
	v.stop()
	if v.writer.Length() > 0 {
		fmt.Fprintln(v.out)
	}
}

// bar draws a bar. The library's own computes with floats and stops short of full.
func bar(value, total int64, width int) string {
	full := width
	if total > 0 {
		full = int(value * int64(width) / total)
	}

	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
