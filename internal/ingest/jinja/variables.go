package jinja

// Variables are what the executions of templates that share variables are given, one after the other. They belong to
// one goroutine.
type Variables struct {
	root scope
	ids  []int // those of Template.Names
}

// NewVariables returns variables of which none has a value.
func (t *Template) NewVariables() *Variables {
	v := &Variables{}
	for _, name := range t.Names() {
		v.ids = append(v.ids, t.ids[name])
	}
	v.root.names = make([]binding, len(v.ids))
	v.Clear()
	return v
}

// Clear takes the values away.
func (v *Variables) Clear() {
	for i := range v.root.names {
		v.root.names[i] = binding{id: noID}
	}
}

// noID is the id of no name.
const noID = -1

// Set gives the variable with the i-th of Template.Names a value.
func (v *Variables) Set(i int, value any) { v.root.names[i] = binding{id: v.ids[i], value: value} }

// Get returns the value of the i-th variable. ok is false if it has none.
func (v *Variables) Get(i int) (value any, ok bool) {
	b := &v.root.names[i]
	return b.value, b.id != noID
}

// Read reports whether an execution since Clear read the i-th variable.
func (v *Variables) Read(i int) bool { return v.root.names[i].read }

// RenderVariables executes the template, as Render does, and forgets the spans of generation blocks. o.Scratch must
// not be nil.
func (t *Template) RenderVariables(dst []byte, v *Variables, o Options) ([]byte, error) {
	out, _, _, err := t.render(dst, &v.root, o)
	return out, err
}
