package memrecord

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const hostile = "<img src=x onerror=alert(1)>\x1b\u202e"

// write returns a record of n steps that leaks a MiB a step and then runs out of memory.
func write(steps int, device string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"start","device":%q,"device_total":17179869184,"parameter_bytes":400000000}`+"\n",
		strings.NewReplacer("\x1b", "", "\u202e", "").Replace(device))
	for i := 1; i <= steps; i++ {
		for k, phase := range []string{"load", "forward", "backward"} {
			held := int64(1<<30) + int64(i)<<20
			fmt.Fprintf(&b, `{"type":"snapshot","step":%d,"phase":%q,"allocated":%d,"reserved":%d,"peak":%d,"free":%d,"rss":%d,"batch":{"rows":8,"length":128}}`+"\n",
				i, phase, held, held+1<<29, held+int64(k)<<28, int64(14<<30), int64(1<<30))
		}
	}
	fmt.Fprintf(&b, `{"type":"oom","step":%d,"phase":"backward","message":"CUDA out of memory","requested":2147483648}`+"\n", steps+1)
	return b.String()
}

// The page names the failing step and marks each finding; it asks for nothing, and data stay text.
func TestTimelineMarksWhatHappened(t *testing.T) {
	var page bytes.Buffer
	a, err := Timeline(&page, strings.NewReader(write(60, "cuda:0 "+hostile)), "run "+hostile)
	if err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if len(a.Verdicts) == 0 || !strings.Contains(text, "ran out of memory at step 61, backward, asking for 2GiB") {
		t.Errorf("%d findings; the failing step is not named", len(a.Verdicts))
	}
	if n := strings.Count(text, `<circle class="dot"`); n != len(a.Verdicts) {
		t.Errorf("%d marks for %d findings", n, len(a.Verdicts))
	}
	for _, class := range []string{"allocated", "reserved", "peak", "rss"} {
		d := regexp.MustCompile(`<path class="curve ` + class + `" d="(M[^"]*)"`).FindStringSubmatch(text)
		if d == nil || strings.Count(d[1], "L") < 100 {
			t.Errorf("the line of %s: %.60q", class, d)
		}
	}
	if !strings.Contains(text, "the device has 16GiB") {
		t.Error("the device's memory is not drawn")
	}
	if strings.Contains(text, "<img") || strings.Contains(text, "\x1b") || strings.Contains(text, "\u202e") ||
		strings.Contains(text, "<script") {
		t.Error("data became markup")
	}
	if bad := regexp.MustCompile(`https?:|url\(|@import|%!|NaN|ZgotmplZ`).FindString(text); bad != "" {
		t.Errorf("the page has %q", bad)
	}
}

func TestTimelineOfOddRecords(t *testing.T) {
	for name, record := range map[string]string{
		"no snapshot":   `{"type":"start"}`,
		"no figure":     `{"type":"start"}` + "\n" + `{"type":"snapshot","phase":"load"}`,
		"one snapshot":  `{"type":"start"}` + "\n" + `{"type":"snapshot","step":1,"phase":"load","rss":5}`,
		"oom alone":     `{"type":"start","device_total":100}` + "\n" + `{"type":"oom","phase":"forward"}`,
		"huge figures":  `{"type":"start"}` + "\n" + `{"type":"snapshot","step":1,"phase":"load","rss":1e300}`,
		"negative ones": `{"type":"start"}` + "\n" + `{"type":"snapshot","step":1,"phase":"load","rss":-5,"peak":-1}`,
	} {
		var page bytes.Buffer
		if _, err := Timeline(&page, strings.NewReader(record), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if bad := regexp.MustCompile(`NaN|Inf|%!`).FindString(page.String()); bad != "" {
			t.Errorf("%s: the page has %q", name, bad)
		}
	}
}

// A record of any length takes the memory of as many snapshots as are held; its findings, its steps and its highest moment stay.
func TestLongRecordsAreThinned(t *testing.T) {
	short, err := Read(strings.NewReader(write(300, "cuda:0")))
	if err != nil {
		t.Fatal(err)
	}
	const steps = few + 1001
	var w strings.Builder
	fmt.Fprintln(&w, `{"type":"start","device":"cuda:0","device_total":17179869184,"parameter_bytes":400000000}`)
	for i := 1; i <= steps; i++ {
		peak := 5 << 30
		if i == 2311 {
			peak = 9 << 30
		}
		for _, phase := range []string{"load", "backward"} {
			fmt.Fprintf(&w, `{"type":"snapshot","step":%d,"phase":%q,"allocated":%d,"peak":%d,"rss":1}`+"\n", i, phase,
				1<<30+i<<20, peak)
		}
	}
	rec, err := read(strings.NewReader(w.String()), few)
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.snapshots) > few+2 || len(rec.snapshots) < few/4 {
		t.Errorf("%d snapshots are held", len(rec.snapshots))
	}
	a := rec.analyse()
	if a.Steps != steps || a.Peak == nil || *a.Peak != 9<<30 {
		t.Errorf("%d steps, peak %v", a.Steps, a.Peak)
	}
	if len(a.Verdicts) == 0 || a.Verdicts[0].Kind != short.Verdicts[0].Kind {
		t.Errorf("findings %+v, of a short record %+v", a.Verdicts, short.Verdicts)
	}
	for i := 1; i < len(rec.snapshots); i++ {
		if *rec.snapshots[i].Step < *rec.snapshots[i-1].Step {
			t.Fatalf("step %d follows %d", *rec.snapshots[i].Step, *rec.snapshots[i-1].Step)
		}
	}
}

// A device with much more memory than was used does not flatten the lines, and steps are labelled at
// even distances.
func TestTimelineOfASmallRun(t *testing.T) {
	for steps, want := range map[int]string{1: "[step 1]", 4: "[step 1 step 2 step 3 step 4]",
		9: "[step 2 step 4 step 6 step 8]", 60: "[step 10 step 20 step 30 step 40 step 50 step 60]"} {
		var b strings.Builder
		b.WriteString(`{"type":"start","device":"cpu","device_total":25769803776}` + "\n")
		for i := 1; i <= steps; i++ {
			for _, phase := range []string{"load", "forward"} {
				fmt.Fprintf(&b, `{"type":"snapshot","step":%d,"phase":%q,"rss":%d}`+"\n", i, phase,
					int64(300<<20+i<<20))
			}
		}
		rec, err := read(strings.NewReader(b.String()), maxSnapshots)
		if err != nil {
			t.Fatal(err)
		}
		chart := string(rec.chart(rec.analyse()))
		var labels []string
		for _, tick := range regexp.MustCompile(`>(step \d+)<`).FindAllStringSubmatch(chart, -1) {
			labels = append(labels, tick[1])
		}
		if got := fmt.Sprint(labels); got != want {
			t.Errorf("%d steps: %s, want %s", steps, got, want)
		}
		var x, y float64
		_, path, _ := strings.Cut(chart, `<path class="curve rss" d="`)
		if _, err := fmt.Sscanf(path, "M%f %f", &x, &y); err != nil || y > (plotTop+plotBottom)/2 ||
			strings.Contains(chart, `class="cap"`) {
			t.Errorf("%d steps: a line begins too low, or the device is drawn (%v): %s", steps, err, chart)
		}
		if !strings.Contains(chart, "the device has 24GiB") {
			t.Error(chart)
		}
	}
}
