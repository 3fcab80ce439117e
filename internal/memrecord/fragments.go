package memrecord

import "github.com/dsload/dsload/internal/markup"

func findings(all []Verdict) markup.HTML {
	if len(all) == 0 {
		return "<h2>Nothing out of the ordinary</h2>\n"
	}
	item := func(_ int, text string) markup.HTML { return markup.Format("<li><bdi>%s</bdi></li>", text) }
	return "<h2>Why, and what to change</h2>\n<ol>\n" + markup.Each(all, func(_ int, v Verdict) markup.HTML {
		var actions markup.HTML
		if len(v.Actions) > 0 {
			actions = "<ul>" + markup.Each(v.Actions, item) + "</ul>"
		}
		return markup.Format(`<li><bdi>%s</bdi> <span class="soft">(%s, %s)</span>%s</li>`+"\n", v.Message, v.Kind, v.Phase,
			actions)
	}) + "</ol>\n"
}

func (r tableRow) html() markup.HTML {
	var class, end markup.HTML
	if r.Failed {
		class, end = ` class="failed"`, ": out of memory"
	}
	cells := []string{r.Allocated, r.Peak, r.Reserved, r.Free, r.RSS}
	return markup.Format("\n"+`<tr%s><th scope="row">%s</th><td>%s%s</td>%s</tr>`, class, r.Step, r.Phase, end,
		markup.Each(cells, func(_ int, c string) markup.HTML { return markup.Format("<td>%s</td>", c) }))
}

func (c *timelineChart) html() markup.HTML {
	if c == nil {
		return "<p>The record has no snapshot with a figure.</p>"
	}
	drawn := markup.Each(c.YTicks, func(_ int, t chartTick) markup.HTML {
		return markup.Format(`<line class="grid" x1="72" x2="912" y1="%[1]s" y2="%[1]s"/>`+
			`<text x="66" y="%[1]s" dy="4" text-anchor="end">%[2]s</text>`, t.At, t.Text)
	}) + markup.Each(c.XTicks, func(_ int, t chartTick) markup.HTML {
		return markup.Format(`<text x="%s" y="360" text-anchor="middle">%s</text>`, t.At, t.Text)
	})
	if c.Cap != nil {
		drawn += markup.Format(`<line class="cap" x1="72" x2="912" y1="%[1]s" y2="%[1]s"/>`+
			`<text class="capname" x="76" y="%[1]s" dy="-6">%[2]s</text>`, c.Cap.At, c.Cap.Text)
	}
	drawn += markup.Each(c.Lines, func(_ int, l chartLine) markup.HTML {
		return markup.Format(`<path class="curve %s" d="%s"/>`, l.Class, l.Path)
	})
	if f := c.Fail; f != nil {
		drawn += markup.Format(`<line class="fail" x1="%[1]s" x2="%[1]s" y1="%[2]s" y2="340"/>`+
			`<text class="failname" x="%[3]s" y="%[2]s" dy="10" text-anchor="%[4]s">%[5]s</text>`, f.X, c.FailAt, f.TextX,
			f.Anchor, f.Text)
	}
	drawn += markup.Each(c.Marks, func(_ int, m chartMark) markup.HTML {
		return markup.Format(`<circle class="dot" cx="%[1]s" cy="%[2]s" r="11"/>`+
			`<text class="dotname" x="%[1]s" y="%[2]s" dy="4" text-anchor="middle">%[3]d</text>`, m.X, m.Y, m.Number)
	})
	keys := markup.Each(c.Lines, func(_ int, l chartLine) markup.HTML {
		return markup.Format(`<li><svg viewBox="0 0 22 10" aria-hidden="true"><path class="curve %s" d="M0 5H22"/></svg>`+
			`%s, %s at the end</li>`, l.Class, l.Name, l.Last)
	})
	return markup.Format(`<div class="scroll" tabindex="0" role="group" aria-label="Chart of memory over time">
<svg viewBox="0 0 960 380" role="img" aria-label="%s">
%s
</svg>
</div>
<ul class="keys">%s</ul>`, c.Label, drawn, keys)
}
