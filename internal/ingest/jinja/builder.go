package jinja

import "unsafe"

// A Builder makes dicts and lists of which the length is not known before. They lie in memory that it uses
// again after Reset. The zero value is ready.
type Builder struct {
	members []entry // members of dicts that are not complete, and items of such lists
	items   []any

	dicts   room[Dict]
	lists   room[List]
	entries room[entry]
	values  room[any]
	texts   room[string]
}

// room is memory for values that are made one after the other.
type room[T any] struct{ block []T }

const firstBlock = 16

// boxed returns a string as a value that lies in the room. An ordinary conversion takes memory of its own for each.
func boxed(texts *room[string], s string) (v any) {
	p := &texts.take(1)[0]
	*p = s
	v = ""
	(*struct{ kind, data unsafe.Pointer })(unsafe.Pointer(&v)).data = unsafe.Pointer(p)
	return v
}

// take returns n zero values. Blocks grow to keptScratch values; what is larger lies apart.
func (r *room[T]) take(n int) []T {
	used := len(r.block)
	if n > cap(r.block)-used {
		if 2*n > keptScratch {
			return make([]T, n)
		}
		used, r.block = 0, make([]T, 0, min(max(2*cap(r.block), 2*n, firstBlock), keptScratch))
	}
	r.block = r.block[:used+n]
	return r.block[used : used+n : used+n]
}

func (r *room[T]) reset() {
	clear(r.block)
	r.block = r.block[:0]
}

// Mark returns where a dict and a list begin whose members and items follow.
func (b *Builder) Mark() (members, items int) { return len(b.members), len(b.items) }

// Member adds a member to the innermost dict. key is a string.
func (b *Builder) Member(key, value any) {
	b.members = append(b.members, entry{key: key, hash: key, value: value})
}

// Text returns a string as a value.
func (b *Builder) Text(s string) any { return boxed(&b.texts, s) }

// Item adds an item to the innermost list.
func (b *Builder) Item(value any) { b.items = append(b.items, value) }

// Dict returns a dict of the members since a mark, and forgets them. Of several with one key the last counts.
func (b *Builder) Dict(mark int) *Dict {
	members := b.members[mark:]
	d := &b.dicts.take(1)[0]
	if len(members) <= smallDict && distinct(members) {
		d.entries = b.entries.take(len(members))
		copy(d.entries, members)
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
	l := &b.lists.take(1)[0]
	if len(items) > 0 {
		l.Items = b.values.take(len(items))
		copy(l.Items, items)
	}
	clear(items)
	b.items = b.items[:mark]
	return l
}

// Reset ends the life of all that was built, and drops memory beyond what ordinary objects need.
func (b *Builder) Reset() {
	b.members, b.items = emptied(b.members), emptied(b.items)
	b.dicts.reset()
	b.lists.reset()
	b.entries.reset()
	b.values.reset()
	b.texts.reset()
}
