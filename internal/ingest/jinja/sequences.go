package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// getter returns a function that gets an attribute by a path such as "a.b.0" from an element.
func (e *execution) getter(attribute any, absent any) func(any) any {
	var parts []any
	if s, ok := text(attribute); ok {
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil && part != "" && isDigit(part[0]) {
				parts = append(parts, n)
			} else {
				parts = append(parts, part)
			}
		}
	} else if attribute != nil {
		parts = []any{attribute}
	}
	return func(v any) any {
		for _, part := range parts {
			e.step(1)
			v = e.item(v, part)
			if _, ok := v.(*undefined); ok && absent != nil {
				v = absent
			}
		}
		return v
	}
}

// sortKey returns a function for the key of an element: what get returns, in lower case unless caseSensitive.
func (e *execution) sortKey(get func(any) any, caseSensitive bool) func(any) any {
	return func(v any) any {
		v = get(v)
		if s, ok := text(v); ok && !caseSensitive {
			e.charge(int64(len(s)))
			return lower(s)
		}
		return v
	}
}

// sorted returns the items in the order of their keys. The sort is stable.
func (e *execution) sorted(items []any, key func(any) any, reverse bool) []any {
	type keyed struct{ key, item any }
	e.charge(3 * int64(len(items)) * valueBytes)
	list := make([]keyed, len(items))
	for i, item := range items {
		list[i] = keyed{key(item), item}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		if reverse {
			return e.compare(b.key, a.key, "<")
		}
		return e.compare(a.key, b.key, "<")
	})
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i].item
	}
	return out
}

func filterSort(e *execution, v any, a *arguments) any {
	e.check("sort", a, "reverse", "case_sensitive", "attribute")
	items := e.iterate(v)
	names := []any{a.get(2, "attribute", nil)}
	if s, ok := text(names[0]); ok {
		names = names[:0]
		for name := range strings.SplitSeq(s, ",") {
			names = append(names, name)
		}
	}
	keys := make([]func(any) any, len(names))
	for i := range names {
		keys[i] = e.sortKey(e.getter(names[i], nil), isTrue(a.get(1, "case_sensitive", false)))
	}
	return &List{Items: e.sorted(items, func(v any) any {
		list := make([]any, len(keys)) // two attributes that are missing are equal, in Python too
		for i, key := range keys {
			list[i] = key(v)
		}
		return &List{Items: list}
	}, isTrue(a.get(0, "reverse", false)))}
}

func filterDictsort(e *execution, v any, a *arguments) any {
	e.check("dictsort", a, "case_sensitive", "by", "reverse")
	d, ok := v.(*Dict)
	if !ok {
		e.exists(v)
		e.fail("'%s' object has no attribute 'items'", typeName(v))
	}
	by := int64(0)
	if e.str(a.get(1, "by", "key")) == "value" {
		by = 1
	}
	items := (&view{d, viewItems}).items(e)
	key := e.sortKey(e.getter(by, nil), isTrue(a.get(0, "case_sensitive", false)))
	return &List{Items: e.sorted(items, key, isTrue(a.get(2, "reverse", false)))}
}

func filterGroupby(e *execution, v any, a *arguments) any {
	e.check("groupby", a, "attribute", "default", "case_sensitive")
	get := e.getter(e.required("groupby", a, 0), a.get(1, "default", nil))
	key := e.sortKey(get, isTrue(a.get(2, "case_sensitive", false)))
	var out []any
	var last any
	for i, item := range e.sorted(e.iterate(v), key, false) {
		k := key(item)
		if i == 0 || !e.equal(k, last) {
			e.charge(4 * valueBytes)
			out = append(out, &List{Items: []any{get(item), &List{}}, kind: ofGroup})
			last = k
		}
		list := out[len(out)-1].(*List).Items[1].(*List)
		list.Items = append(list.Items, item)
	}
	return &List{Items: out}
}

func filterUnique(e *execution, v any, a *arguments) any {
	e.check("unique", a, "case_sensitive", "attribute")
	key := e.sortKey(e.getter(a.get(1, "attribute", nil), nil), isTrue(a.get(0, "case_sensitive", false)))
	seen := map[any]bool{}
	var out []any
	for _, item := range e.iterate(v) {
		hash, ok := hashOf(key(item))
		if !ok {
			e.fail("unhashable type: '%s'", typeName(item))
		}
		if !seen[hash] {
			e.charge(entryBytes)
			seen[hash] = true
			out = append(out, item)
		}
	}
	return &iterator{out, "sync_do_unique"}
}

func extreme(name string, sign int) filter {
	return func(e *execution, v any, a *arguments) any {
		e.check(name, a, "case_sensitive", "attribute")
		key := e.sortKey(e.getter(a.get(1, "attribute", nil), nil), isTrue(a.get(0, "case_sensitive", false)))
		items := e.iterate(v)
		if len(items) == 0 {
			return &undefined{hint: "No aggregated item, sequence was empty."}
		}
		best, bestKey := items[0], key(items[0])
		for _, item := range items[1:] {
			if k := key(item); sign*e.compare(k, bestKey, "<") > 0 {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func filterFirst(e *execution, v any, _ *arguments) any {
	if s, ok := text(v); ok {
		if c, ok := e.character(s, 0); ok {
			return sameKind(v, c)
		}
	} else if items := e.iterate(v); len(items) > 0 {
		return items[0]
	}
	return &undefined{hint: "No first item, sequence was empty."}
}

func filterLast(e *execution, v any, _ *arguments) any {
	switch v := v.(type) {
	case string, markup:
		s, _ := text(v)
		if c, ok := e.character(s, -1); ok {
			return sameKind(v, c)
		}
	case *iterator:
		e.fail("'%s' object is not reversible", typeName(v))
	default:
		if items := e.iterate(v); len(items) > 0 {
			return items[len(items)-1]
		}
	}
	return &undefined{hint: "No last item, sequence was empty."}
}

func filterReverse(e *execution, v any, _ *arguments) any {
	if s, ok := text(v); ok {
		e.charge(int64(len(s)) * valueBytes)
		chars := characters(s)
		slices.Reverse(chars)
		return strings.Join(chars, "")
	}
	items := e.clone(e.iterate(v))
	slices.Reverse(items)
	return &iterator{items, "reversed"}
}

func filterItems(e *execution, v any, _ *arguments) any {
	switch v := v.(type) {
	case *undefined:
		return &iterator{nil, "do_items"}
	case *Dict:
		return &iterator{(&view{v, viewItems}).items(e), "do_items"}
	}
	e.fail("Can only get item pairs from a mapping.")
	return nil
}

func filterJoin(e *execution, v any, a *arguments) any {
	e.check("join", a, "d", "attribute")
	between := e.str(a.get(0, "d", ""))
	get := e.getter(a.get(1, "attribute", nil), nil)
	items := e.iterate(v)
	p := printer{e: e}
	for i, item := range items {
		if i > 0 {
			p.write(between)
		}
		p.write(e.str(get(item)))
	}
	return string(p.out)
}

func filterSum(e *execution, v any, a *arguments) any {
	e.check("sum", a, "attribute", "start")
	get := e.getter(a.get(0, "attribute", nil), nil)
	total := a.get(1, "start", int64(0))
	for _, item := range e.iterate(v) {
		total = e.arithmetic("+", total, get(item))
	}
	return total
}

// filterMap applies a filter to each element, or takes an attribute of each.
func filterMap(e *execution, v any, a *arguments) any {
	if !e.isTrue(v) { // None too
		return &iterator{nil, "sync_do_map"}
	}
	items := e.iterate(v)
	e.charge(int64(len(items)) * valueBytes)
	out := make([]any, len(items))
	if attribute, ok := a.named.find("attribute"); ok && len(a.positional) == 0 {
		get := e.getter(attribute, a.get(-1, "default", nil))
		for i, item := range items {
			out[i] = get(item)
		}
		return &iterator{out, "sync_do_map"}
	}
	name := e.textArgument("map", a, 0)
	inner := &arguments{positional: a.positional[1:], named: a.named}
	for i, item := range items {
		out[i] = e.filter(name, filters[name], item, inner)
	}
	return &iterator{out, "sync_do_map"}
}

// selecting returns a filter that keeps or drops the elements that pass a test.
func selecting(keep, byAttribute bool) filter {
	return func(e *execution, v any, a *arguments) any {
		if !e.isTrue(v) { // None too
			return &iterator{nil, "select_or_reject"}
		}
		get := func(v any) any { return v }
		rest := a.positional
		if byAttribute {
			get = e.getter(e.required("selectattr", a, 0), nil)
			rest = rest[1:]
		}
		passes := isTrue
		if len(rest) > 0 {
			name, ok := text(rest[0])
			if !ok {
				e.fail("the name of a test must be a string")
			}
			inner := &arguments{positional: rest[1:], named: a.named}
			passes = func(v any) bool { return e.testBy(name, v, inner) }
		}
		var out []any
		for _, item := range e.iterate(v) {
			if passes(get(item)) == keep {
				e.charge(valueBytes)
				out = append(out, item)
			}
		}
		return &iterator{out, "select_or_reject"}
	}
}

func filterBatch(e *execution, v any, a *arguments) any {
	e.check("batch", a, "linecount", "fill_with")
	n, ok := toInt(a.get(0, "linecount", nil))
	if !ok || n < 1 {
		e.fail("batch wants a number of at least 1")
	}
	fill := a.get(1, "fill_with", nil)
	var out []any
	items := e.iterate(v)
	for len(items) > 0 {
		k := min(n, int64(len(items)))
		e.charge((k + 1) * valueBytes)
		line := slices.Clone(items[:k])
		if fill != nil && k < n {
			e.charge(min(n, e.left.Bytes+1) * valueBytes)
			for int64(len(line)) < n {
				line = append(line, fill)
			}
		}
		out = append(out, &List{Items: line})
		items = items[k:]
	}
	return &iterator{out, "do_batch"}
}

func filterSlice(e *execution, v any, a *arguments) any {
	e.check("slice", a, "slices", "fill_with")
	n, ok := toInt(a.get(0, "slices", nil))
	if !ok || n < 1 {
		e.fail("slice wants a number of at least 1")
	}
	items := e.iterate(v)
	e.charge(min(n, e.left.Bytes+1) * valueBytes)
	fill := a.get(1, "fill_with", nil)
	per, more := int64(len(items))/n, int64(len(items))%n
	var out []any
	at := int64(0)
	for i := range n {
		end := at + per
		if i < more {
			end++
		}
		e.charge((end - at + 2) * valueBytes)
		line := slices.Clone(items[at:end])
		if fill != nil && i >= more {
			line = append(line, fill)
		}
		out = append(out, &List{Items: line})
		at = end
	}
	return &iterator{out, "sync_do_slice"}
}
