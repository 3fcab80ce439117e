package jinja

// A Scratch is memory that the executions of one goroutine share, one after the other.
type Scratch struct {
	// Printed reports that a list or an object was made text, as Python prints it. Executions leave it set.
	Printed   bool
	execution execution
	output    output
	parts     []string // text that is about to be joined
	values    []any    // values that are about to be joined
	text      []byte   // text of JSON
	outputs   []*output
	scopes    []*scope
	loops     []*loop
	arguments []*arguments
	texts     room[string] // what filters made
	absent    []undefined  // attributes that dicts do not have
	shared    *List        // see Share
	json      map[jsonOf]jsonText
}

// jsonOf is a value that a filter makes JSON of, and jsonText the JSON and what it costs.
type (
	jsonOf struct {
		value any // *List or *Dict
		by    *filterExpr
	}
	jsonText struct {
		text         string
		steps, bytes int64
	}
)

const (
	maxSharedItems = 64
	maxSharedJSON  = 16 << 10 // bytes of each
)

// Share lets executions remember the JSON of a list, and of its items, none of which ever changes. It replaces
// the last list.
func (s *Scratch) Share(list *List) {
	if s.shared != list {
		s.shared, s.json = list, nil
	}
}

// shares reports whether v is what Share was told, or an item of it.
func (s *Scratch) shares(v any) bool {
	switch v := v.(type) {
	case *List:
		return v == s.shared
	case *Dict:
		if s.shared != nil && len(s.shared.Items) <= maxSharedItems {
			for _, item := range s.shared.Items {
				if item == any(v) {
					return true
				}
			}
		}
	}
	return false
}

// missingField returns the value of an attribute that a dict does not have.
func (s *Scratch) missingField(name string) *undefined {
	if len(s.absent) == cap(s.absent) {
		s.absent = make([]undefined, 0, max(8, min(2*cap(s.absent), keptScratch)))
	}
	s.absent = append(s.absent, undefined{attribute: name})
	return &s.absent[len(s.absent)-1]
}

// keptScratch bounds the entries, and keptText the bytes, that a Scratch keeps between executions.
const (
	keptScratch = 1 << 10
	keptText    = 64 << 10
	keptOutputs = 8 // of blocks, of which few nest
)

// clean drops all values, so that they can be collected, and what has grown large.
func (s *Scratch) clean() {
	s.parts, s.values = emptied(s.parts), emptied(s.values)
	if cap(s.text) > keptText {
		s.text = nil
	}
	if max(len(s.scopes), len(s.loops), len(s.arguments)) > keptScratch {
		s.scopes, s.loops, s.arguments = nil, nil, nil
	}
	s.execution.trace, s.execution.out, s.output = nil, nil, output{}
	s.absent = emptied(s.absent)
	s.texts.reset()
}

// emptied drops the elements of a list, and its memory if that has grown large.
func emptied[T any](list []T) []T {
	if cap(list) > keptScratch {
		return nil
	}
	clear(list)
	return list[:0]
}

// scope holds the names of a block.
type scope struct {
	names  []binding
	parent *scope
}

type binding struct {
	id    int
	value any
	read  bool
}

func (s *scope) get(id int) (any, bool) {
	for ; s != nil; s = s.parent {
		for i := range s.names {
			if s.names[i].id == id {
				s.names[i].read = true
				return s.names[i].value, true
			}
		}
	}
	return nil, false
}

func (s *scope) set(id int, value any) {
	for i := range s.names {
		if s.names[i].id == id {
			s.names[i].value = value
			return
		}
	}
	s.names = append(s.names, binding{id: id, value: value})
}

func (s *scope) clear() {
	clear(s.names)
	s.names = s.names[:0]
}

func (e *execution) newScope(parent *scope) *scope {
	e.charge(scopeBytes)
	return e.takeScope(parent)
}

func (s *Scratch) takeScope(parent *scope) *scope {
	n := len(s.scopes)
	if n == 0 {
		return &scope{parent: parent}
	}
	free := s.scopes[n-1]
	s.scopes = s.scopes[:n-1]
	free.parent = parent
	return free
}

// release gives back a scope that has ended, unless a macro may still use it.
func (e *execution) release(s *scope) { e.Scratch.release(s, e.template) }

func (s *Scratch) release(ended *scope, t *Template) {
	if t.closures {
		return
	}
	ended.clear()
	ended.parent = nil
	if cap(ended.names) <= keptScratch {
		s.scopes = append(s.scopes, ended)
	}
}

var noArguments arguments

// takeArguments evaluates the arguments of a filter, a test or a method, which keeps none of them.
func (e *execution) takeArguments(list *argumentList, s *scope) *arguments {
	if list.list != nil || list.dict != nil {
		return e.argumentsOf(list, s)
	}
	if len(list.positional)+len(list.names) == 0 {
		return &noArguments
	}
	var a *arguments
	if n := len(e.arguments); n > 0 {
		a, e.arguments = e.arguments[n-1], e.arguments[:n-1]
	} else {
		a = &arguments{}
	}
	e.fill(a, list, s)
	return a
}

// fill adds the arguments that are written one by one.
func (e *execution) fill(a *arguments, list *argumentList, s *scope) {
	e.charge(int64(len(list.positional)) * valueBytes)
	for _, n := range list.positional {
		a.positional = append(a.positional, e.eval(n, s))
	}
	for i, name := range list.names {
		e.charge(entryBytes)
		a.named.put(name, name, e.eval(list.named[i], s))
	}
}

// dropArguments gives back what takeArguments returned.
func (e *execution) dropArguments(a *arguments) {
	if a == &noArguments || cap(a.positional)+cap(a.named.entries) > 2*smallDict {
		return
	}
	clear(a.positional)
	clear(a.named.entries)
	a.positional, a.named.entries = a.positional[:0], a.named.entries[:0]
	e.Scratch.arguments = append(e.Scratch.arguments, a)
}

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
