package stats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/units"
)

// shortName returns a name, shortened where it is long.
func shortName(name string) markup.HTML {
	return markup.Format(`<bdi class="name">%s</bdi>`, short(name))
}

// wholeName is shortName with a title that has all of the name.
func wholeName(name string) markup.HTML {
	return markup.Format(`<bdi class="name" title="%s">%s</bdi>`, name, short(name))
}

// heading returns a dataset's name as a heading if two are compared.
func heading(names []string, i int) markup.HTML {
	if len(names) == 1 {
		return ""
	}
	return "<h3>" + shortName(names[i]) + "</h3>"
}

func header(reports []*Report, names []string) markup.HTML {
	if len(reports) == 1 {
		return markup.Format("<h1>%s: %s</h1>\n", wholeName(names[0]), reports[0].headline())
	}
	return markup.Format("<h1>%s and %s, side by side</h1>\n", wholeName(names[0]), wholeName(names[1])) +
		markup.Each(reports, func(i int, r *Report) markup.HTML {
			return markup.Format("<p>%s: %s</p>\n", shortName(names[i]), r.headline())
		})
}

// copied returns the recommended setting in the two forms that can be copied.
func copied(r *Report, heading markup.HTML, name string) markup.HTML {
	return markup.Format(`<div>%s
<pre tabindex="0" role="region" aria-label="The setting in Python, %s">%s</pre>
<button type="button" class="copy">Copy</button>
<pre tabindex="0" role="region" aria-label="The setting as a query, %s">curl --unix-socket SOCKET 'http://dsload%s'</pre>
<button type="button" class="copy">Copy</button>
</div>`, heading, name, r.loader(), name, r.query())
}

// maxSources is how many sources a page names.
const maxSources = 12

// origin returns what a dataset was made from.
func origin(r *Report, heading markup.HTML, settings []setting) markup.HTML {
	sources := markup.Each(r.Sources[:min(len(r.Sources), maxSources)], func(_ int, s Source) markup.HTML {
		text := wholeName(s.URI)
		if s.Bytes >= 0 {
			text += markup.Format(", %s bytes", units.Count(s.Bytes))
		}
		if s.BytesPerToken != nil {
			text += markup.Format(", %s bytes a token", fmt.Sprintf("%.3f", *s.BytesPerToken))
		}
		return "<dt>source</dt><dd>" + text + "</dd>\n"
	})
	if len(r.Sources) > maxSources {
		sources += markup.Format("<dt>sources</dt><dd>%d in all</dd>\n", len(r.Sources))
	}
	return markup.Format(`<div>%s
<dl>
<dt>tokenizer</dt><dd>%s, %s ids</dd>
%s</dl>
<details><summary>settings</summary>
<dl>%s</dl>
</details>
%s</div>`, heading, wholeName(r.Tokenizer.Name), units.Count(r.Tokenizer.VocabSize), sources,
		markup.Each(settings, func(_ int, s setting) markup.HTML {
			return markup.Format(`<dt>%s</dt><dd><bdi class="name">%s</bdi></dd>`, s.Name, s.Value)
		}),
		markup.Each(r.Notes, func(_ int, note string) markup.HTML {
			return markup.Format(`<p class="soft">%s</p>`+"\n", note)
		}))
}

// fillSplits fills the slots that show the splits side by side.
func fillSplits(slots map[string]markup.HTML, subjects []subject) {
	each := func(slot string, content func(subject) markup.HTML) {
		slots[slot] = markup.Each(subjects, func(_ int, s subject) markup.HTML {
			return markup.Format("<div><h3><bdi>%s</bdi></h3>\n%s</div>", short(s.Title), content(s))
		})
	}
	each("sources", func(s subject) markup.HTML { return s.sourcesHTML() })
	each("rows", func(s subject) markup.HTML { return s.Rows.html() })
	each("documents", func(s subject) markup.HTML { return s.Documents.html() })
	each("padding", func(s subject) markup.HTML {
		return s.Heat.html("batch size", fmt.Sprintf("Padding of %s by batch size and bucket", short(s.Title)))
	})
	each("packing", func(s subject) markup.HTML {
		return s.Packed.html("length", fmt.Sprintf("Fill of packed rows of %s by length and policy", short(s.Title)))
	})
	each("tokens", frequent)
	each("samples", func(s subject) markup.HTML {
		return markup.Each(s.Samples, func(_ int, x Sample) markup.HTML { return sample(x) })
	})
	var splits []*Split
	for _, s := range subjects {
		slots["splits"] += markup.Format(`<th scope="col"><bdi>%s</bdi></th>`, short(s.Title))
		splits = append(splits, s.Split)
	}
	slots["figures"] = markup.Each(comparison(splits), func(_ int, f figure) markup.HTML {
		return markup.Format("\n"+`<tr><th scope="row">%s</th>%s</tr>`, f.Name,
			markup.Each(f.Values, func(_ int, v string) markup.HTML { return markup.Format("<td>%s</td>", v) }))
	})
}

func frequent(s subject) markup.HTML {
	rows := markup.Each(s.TopTokens, func(_ int, t TopToken) markup.HTML {
		text := t.Text
		if text == "" {
			text = "–"
		}
		return markup.Format(`<tr><td>%s</td><td class="word name">%s</td><td>%s (%s)</td></tr>`, t.ID, text,
			units.Count(t.Count), percent(t.Share))
	})
	return markup.Format(`<div class="scroll" tabindex="0" role="region" aria-label="Most frequent tokens of %s">
<table>
<thead><tr><th scope="col">id</th><th scope="col">token</th><th scope="col">how often</th></tr></thead>
<tbody>%s</tbody>
</table>
</div>`, short(s.Title), rows)
}

func sample(s Sample) markup.HTML {
	cut := ""
	if s.Cut() {
		cut = fmt.Sprintf(", the first %d or so shown", len(s.Pieces))
	}
	partly := slices.ContainsFunc(s.Pieces, func(p Piece) bool { return !p.Loss })
	if partly {
		cut += "; what is underlined carries loss"
	}
	return markup.Format(`<p class="soft">row %s, document %s, part %s, %s tokens%s</p>
<div class="tokens" dir="auto">%s</div>`, units.Count(s.Row), units.Count(s.Document), s.Part, units.Count(s.Tokens), cut,
		markup.Each(s.Pieces, func(i int, p Piece) markup.HTML {
			ids := strings.Trim(fmt.Sprint(p.IDs), "[]")
			text := p.Text
			if text == "" {
				text = ids + " "
			}
			class := []string{"a", "b"}[i%2] + map[bool]string{true: " loss"}[p.Loss && partly]
			return markup.Format(`<span class="%s" title="%s">%s</span>`, class, ids, text)
		}))
}

func (c *chart) html() markup.HTML {
	if c == nil {
		return ""
	}
	unit := c.Unit
	if c.Log {
		unit += ", logarithmic"
	}
	drawn := markup.Each(c.YTicks, func(_ int, t tick) markup.HTML {
		return markup.Format(`<line class="grid" x1="44" x2="384" y1="%[1]s" y2="%[1]s"></line>`+
			`<text x="40" y="%[1]s" dy="4" text-anchor="end">%[2]s</text>`+"\n", t.At, t.Text)
	}) + markup.Format(`<text x="2" y="12">%s</text>`+"\n", unit)
	drawn += markup.Each(c.Bars, func(_ int, b bar) markup.HTML {
		return markup.Format(`<rect class="bar" x="%s" y="%s" width="%s" height="%s"></rect>`+"\n", b.X, b.Y, b.W, b.H)
	})
	drawn += markup.Each(c.XTicks, func(_ int, t tick) markup.HTML {
		return markup.Format(`<text x="%s" y="225" text-anchor="middle">%s</text>`+"\n", t.At, t.Text)
	}) + `<text x="384" y="242" text-anchor="end">tokens</text>` + "\n"
	drawn += markup.Each(c.Marks, func(_ int, m drawnMark) markup.HTML {
		return markup.Format(`<line class="mark m%d" x1="%s" x2="%s" y1="20" y2="206"></line>`+"\n", m.Dashes, m.X, m.X)
	})
	return markup.Format(`<figure>
<svg viewBox="0 0 400 246" role="img" aria-label="%s">
%s</svg>
<p class="key">%s</p>
<details><summary>as a table</summary>
<table><thead><tr><th scope="col">tokens</th><th scope="col">%s</th></tr></thead>
<tbody>%s</tbody></table>
</details>
</figure>`, c.Label, drawn, markup.Each(c.Marks, func(_ int, m drawnMark) markup.HTML {
		return markup.Format(`<span><span class="line k%d"></span>%s</span> `, m.Dashes, m.Text)
	}), c.Unit, markup.Each(c.Bars, func(_ int, b bar) markup.HTML {
		lengths := units.Count(b.From)
		if b.To != b.From {
			lengths += " to " + units.Count(b.To)
		}
		return markup.Format(`<tr><th scope="row">%s</th><td>%s</td></tr>`, lengths, units.Count(b.Count))
	}))
}

// html draws the table. corner is the heading of its first column.
func (t *heatTable) html(corner, label string) markup.HTML {
	head := markup.Each(t.Head, func(_ int, h string) markup.HTML { return markup.Format(`<th scope="col">%s</th>`, h) })
	rows := markup.Each(t.Rows, func(_ int, r heatRow) markup.HTML {
		return markup.Format(`<tr><th scope="row">%s</th>%s</tr>`, r.Name,
			markup.Each(r.Cells, func(_ int, c heatCell) markup.HTML { return c.html() }))
	})
	return markup.Format(`<div class="scroll" tabindex="0" role="region" aria-label="%s">
<table class="heat">
<thead><tr><th scope="col">%s</th>%s</tr></thead>
<tbody>%s</tbody>
</table>
</div>`, label, corner, head, rows)
}

func (c heatCell) html() markup.HTML {
	var class, best, note markup.HTML
	if c.Best {
		class, best = " best", `<span class="hidden"> (least)</span>`
	}
	if c.Note != "" {
		note = markup.Format("<small>%s</small>", c.Note)
	}
	return markup.Format(`<td class="h%d%s">%s%s%s</td>`, c.Level, class, c.Text, best, note)
}
