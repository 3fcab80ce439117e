package jinja

// Variables are what the executions of a template are given, one after the other. They belong to one goroutine.
type Variables struct {
	template *Template
	root     scope
	ids      []int // those of Template.Names
}

// NewVariables returns variables of which none has a value.
func (t *Template) NewVariables() *Variables {
	v := &Variables{template: t}
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

// Read reports whether the last execution read the i-th variable.
func (v *Variables) Read(i int) bool { return v.root.names[i].read }

// Render executes the template, as Template.Render does, and forgets the spans of generation blocks. o.Scratch must
// not be nil.
func (v *Variables) Render(dst []byte, o Options) ([]byte, error) {
	out, _, _, err := v.template.render(dst, &v.root, o)
	return out, err
}
