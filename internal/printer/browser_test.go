//go:build browser

package printer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBrowserNotices checks that the other tests would detect a bad page.
func TestBrowserNotices(t *testing.T) {
	b := newBrowser(t)
	good := printed(t, heldReport(), HTML, Options{})
	for name, bad := range map[string]string{
		"script":  strings.Replace(good, "</body>", "<script>document.title = 'owned'</script></body>", 1),
		"handler": strings.Replace(good, "</body>", `<img src="data:," onerror="document.title = 'owned'"></body>`, 1),
		"fetch":   strings.Replace(good, "</body>", `<img src="https://example.org/x.png"></body>`, 1),
		"style":   strings.Replace(good, "</body>", `<p style="color: red">x</p></body>`, 1),
	} {
		b.open(bad, "", 800, false)
		if title := eval[string](b, "document.title"); title == "owned" {
			t.Errorf("%s: the page's policy must block the script", name)
		}
		if len(b.console) == 0 {
			t.Errorf("%s: the browser must report the blocked script", name)
		}
	}
}

func TestBrowser(t *testing.T) {
	b := newBrowser(t)
	for name, r := range samples() {
		page := printed(t, r, HTML, Options{})
		for _, width := range []int{360, 1600} {
			for _, dark := range []bool{false, true} {
				where := fmt.Sprintf("%s at %d px, dark %t", name, width, dark)
				b.open(page, "", width, dark)
				want, _ := verdict(r)
				if got := eval[string](b, "document.querySelector('.verdict strong').textContent"); got != want {
					t.Errorf("%s: want the verdict %q, got %q", where, want, got)
				}
				if over := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s: the page is %d px wider than the screen", where, over)
				}
				if len(b.console) > 0 {
					t.Errorf("%s: the browser reports: %s", where, b.console)
				}
				if asked := slices.DeleteFunc(slices.Clone(b.requests), isItself); len(asked) > 0 {
					t.Errorf("%s: the page must load nothing else; it requested %s", where, asked)
				}
				b.screenshot(fmt.Sprintf("%s-%d-dark-%t", name, width, dark))
				if got := eval[[]string](b, contrast); len(got) > 0 {
					t.Errorf("%s: the contrast is too low: %s", where, got)
				}
			}
		}
	}
}

func isItself(url string) bool {
	return strings.HasPrefix(url, "file://") || strings.HasPrefix(url, "data:")
}

// contrast returns the texts whose contrast with their background is below 4.5 to 1 (WCAG 2, AA).
const contrast = `(() => {
  const ctx = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => { ctx.clearRect(0, 0, 1, 1); ctx.fillStyle = colour; ctx.fillRect(0, 0, 1, 1); return ctx.getImageData(0, 0, 1, 1).data; };
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, part, n) => { const v = c[n] / 255; return sum + part * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const bad = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || ["SCRIPT", "STYLE"].includes(e.tagName) || !e.checkVisibility()) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(e.className + " " + ratio.toFixed(1) + ": " + texts.currentNode.data.trim().slice(0, 30));
  }
  return [...bad];
})()`

func TestBrowserFolds(t *testing.T) {
	b := newBrowser(t)
	page := printed(t, groupedReport(), HTML, Options{})
	count := func(what string) int { return eval[int](b, "document.querySelectorAll('"+what+"').length") }
	shown := func() int {
		return eval[int](b, "[...document.querySelectorAll('.tree li')].filter((e) => e.checkVisibility()).length")
	}

	b.open(page, "", 1600, false)
	all, atFirst := count(".tree details"), count(".tree details[open]")
	if atFirst == 0 || atFirst == all {
		t.Errorf("Only resources with a problem must be unfolded: of %d, %d are unfolded", all, atFirst)
	}
	eval[any](b, "document.querySelector('[data-open=all]').click()")
	if got := count(".tree details[open]"); got != all {
		t.Errorf("Unfold all: want %d, got %d", all, got)
	}
	before := shown()
	eval[any](b, "document.getElementById('only-wrong').click()")
	if got, want := shown(), count(".tree li.wrong"); got != want || got >= before {
		t.Errorf("Problems only: want %d of %d resources, got %d", want, before, got)
	}
	eval[any](b, "document.getElementById('only-wrong').click()")
	eval[any](b, "document.querySelector('[data-open=none]').click()")
	if got := count(".tree details[open]"); got != 0 {
		t.Errorf("Fold all: %d are unfolded", got)
	}
	eval[any](b, "document.querySelector('[data-open=wrong]').click()")
	if got := count(".tree details[open]"); got != atFirst {
		t.Errorf("Unfold problems: want %d, got %d", atFirst, got)
	}

	deep := "#" + eval[string](b, "document.querySelector('.tree > li.well details li li').id")
	b.open(page, deep, 360, false)
	if !eval[bool](b, "document.querySelector('"+deep+"').checkVisibility()") {
		t.Error("The target of a link must be unfolded")
	}
	eval[any](b, "dispatchEvent(new Event('beforeprint'))")
	if got := count(".tree details[open]"); got != all {
		t.Errorf("A printed page must be unfolded: want %d, got %d", all, got)
	}
}

// TestBrowserWithoutScript opens a page without scripts: everything is there, and folding works.
func TestBrowserWithoutScript(t *testing.T) {
	b := newBrowser(t)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(printed(t, heldReport(), HTML, Options{}), "", 800, false)
	if eval[bool](b, "document.querySelector('.tools').checkVisibility()") {
		t.Error("Without scripts the page must hide its buttons")
	}
	if got := eval[int](b, "document.querySelectorAll('.problems li').length"); got != 2 {
		t.Errorf("want 2 problems, got %d", got)
	}
}
