package example

import (
	"slices"
	"text/template/parse"
)

// A fieldSet is the set of a record's fields that a template uses: all, or those named.
type fieldSet struct {
	all   bool
	names []string
}

func (f *fieldSet) has(name string) bool { return f.all || slices.Contains(f.names, name) }

func (f *fieldSet) add(name string) {
	if !f.has(name) {
		f.names = append(f.names, name)
	}
}

// wantedFields finds the fields of the record that a template uses. A field counts wherever its
// name is used, even where the dot is no longer the record; the record as a whole, as in {{.}} or
// {{index . $name}}, counts as all fields. A template that does not parse uses all; parsing reports
// the error.
func wantedFields(body string) *fieldSet {
	w := wantedWalk{found: &fieldSet{}, trees: map[string]*parse.Tree{}}
	tree := parse.New("prompt")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(body, "", "", w.trees); err != nil {
		return &fieldSet{all: true}
	}
	for _, tree := range w.trees {
		if tree.Root != nil {
			w.list(tree.Root, true) // any of them may be called with the record
		}
	}
	slices.Sort(w.found.names)
	return w.found
}

// wantedWalk walks parse trees. The parameter record reports whether the dot may be the record.
type wantedWalk struct {
	found *fieldSet
	trees map[string]*parse.Tree
}

func (w *wantedWalk) list(l *parse.ListNode, record bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			w.pipe(n.Pipe, record)
		case *parse.IfNode:
			w.branch(&n.BranchNode, record, record)
		case *parse.RangeNode:
			w.branch(&n.BranchNode, record, false)
		case *parse.WithNode:
			w.branch(&n.BranchNode, record, false)
		case *parse.TemplateNode:
			if !w.isRecord(n.Pipe) { // otherwise the other template's tree says what it uses
				w.pipe(n.Pipe, record)
			}
		}
	}
}

func (w *wantedWalk) branch(b *parse.BranchNode, record, inside bool) {
	w.pipe(b.Pipe, record)
	w.list(b.List, inside)
	w.list(b.ElseList, record)
}

// isRecord reports whether a pipeline is just the dot or $.
func (w *wantedWalk) isRecord(p *parse.PipeNode) bool {
	return p != nil && len(p.Decl) == 0 && len(p.Cmds) == 1 && len(p.Cmds[0].Args) == 1 &&
		whole(p.Cmds[0].Args[0], true)
}

// whole reports whether a node is the record itself.
func whole(n parse.Node, record bool) bool {
	switch n := n.(type) {
	case *parse.DotNode:
		return record
	case *parse.VariableNode:
		return len(n.Ident) == 1 && n.Ident[0] == "$"
	}
	return false
}

func (w *wantedWalk) pipe(p *parse.PipeNode, record bool) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		args := c.Args
		if len(args) > 2 && whole(args[1], record) {
			f, isCall := args[0].(*parse.IdentifierNode)
			field, isText := args[2].(*parse.StringNode)
			if isCall && isText && f.Ident == "index" {
				w.found.add(field.Text)
				args = args[3:]
			}
		}
		for _, arg := range args {
			w.node(arg, record)
		}
	}
}

func (w *wantedWalk) node(n parse.Node, record bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		w.found.add(n.Ident[0])
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			w.found.add(n.Ident[1])
		} else {
			w.found.all = w.found.all || whole(n, record)
		}
	case *parse.DotNode:
		w.found.all = w.found.all || record
	case *parse.ChainNode:
		w.node(n.Node, record)
		if len(n.Field) > 0 {
			w.found.add(n.Field[0]) // a field of (.) or the like
		}
	case *parse.PipeNode:
		w.pipe(n, record)
	}
}
