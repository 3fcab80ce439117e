package jinja

// A Builder makes dicts and lists of which the length is not known before. The zero value is ready.
type Builder struct {
	members []entry
	items   []any
}

// Mark returns where a dict and a list begin whose members and items follow.
func (b *Builder) Mark() (members, items int) { return len(b.members), len(b.items) }

// Member adds a member to the innermost dict. key is a string.
func (b *Builder) Member(key, value any) { b.members = append(b.members, entry{key, key, value}) }

// Item adds an item to the innermost list.
func (b *Builder) Item(value any) { b.items = append(b.items, value) }

// Dict returns a dict of the members since a mark, and forgets them. Of several with one key the last counts.
func (b *Builder) Dict(mark int) *Dict {
	members := b.members[mark:]
	d := &Dict{}
	if len(members) <= smallDict && distinct(members) {
		d.entries = append(make([]entry, 0, len(members)), members...)
	} else {
		for i := range members {
			d.put(members[i].key, members[i].hash, members[i].value)
		}
	}
	clear(members)
	b.members = b.members[:mark]
	return d
}

func distinct(members []entry) bool {
	for i := range members {
		for k := range i {
			if members[i].key.(string) == members[k].key.(string) {
				return false
			}
		}
	}
	return true
}

// List returns a list of the items since a mark, and forgets them.
func (b *Builder) List(mark int) *List {
	items := b.items[mark:]
	l := &List{}
	if len(items) > 0 {
		l.Items = append(make([]any, 0, len(items)), items...)
	}
	clear(items)
	b.items = b.items[:mark]
	return l
}

// Reset forgets everything, and memory beyond what ordinary objects need.
func (b *Builder) Reset() {
	if cap(b.members) > keptScratch {
		b.members = nil
	}
	if cap(b.items) > keptScratch {
		b.items = nil
	}
	clear(b.members[:cap(b.members)])
	clear(b.items[:cap(b.items)])
	b.members, b.items = b.members[:0], b.items[:0]
}
