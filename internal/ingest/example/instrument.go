package example

import (
	"fmt"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/dsload/dsload/internal/fault"
)

// Names of the functions that instrument inserts.
const (
	stepFunc    = "_step"
	enterFunc   = "_enter"
	leaveFunc   = "_leave"
	shownFunc   = "_shown"
	rangedFunc  = "_ranged"
	weighedFunc = "_weighed"
)

var (
	// stringFuncs lists the functions whose results may be longer than their arguments.
	stringFuncs = map[string]bool{"print": true, "println": true, "printf": true, "html": true, "js": true,
		"urlquery": true, "join": true, "lower": true, "upper": true}
	// weighedFuncs lists the functions that read their arguments to the end.
	weighedFuncs = map[string]bool{"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true,
		"index": true}
)

// maxTemplateNesting bounds the nesting of actions and parentheses in a template.
const maxTemplateNesting = 100

// instrumented is what instrument found in a template's body.
type instrumented struct {
	makesStrings bool
	nesting      int
}

// instrument rewrites a parsed body so that its execution is metered. The body of each loop begins
// with the cost of its nodes, the whole body begins and ends with its cost and nesting, and values
// that are printed, ranged over or compared pass through the meter. The output does not change.
//
//	{{range .a}}{{.}}{{end}} becomes {{_enter 13 2}}{{range .a | _ranged}}{{_step 6}}{{. |
//	_shown}}{{end}}{{_leave 2}}
func instrument(tree *parse.Tree) (instrumented, error) {
	var w treeWalk
	cost := w.list(tree.Root, 1)
	if w.nesting > maxTemplateNesting {
		return w.instrumented, fault.Of(ErrTemplate,
			"%s: nested %d levels deep, at most %d are allowed; split it with {{define}}", tree.ParseName,
			w.nesting, maxTemplateNesting)
	}
	nodes := append([]parse.Node{call(enterFunc, callSteps+cost, w.nesting)}, tree.Root.Nodes...)
	tree.Root.Nodes = append(nodes, call(leaveFunc, w.nesting))
	return w.instrumented, nil
}

// treeWalk rewrites a tree and counts its nodes.
type treeWalk struct{ instrumented }

// list returns the cost of a list of nodes without the bodies of its loops, which charge for each
// iteration.
func (w *treeWalk) list(l *parse.ListNode, depth int) (cost int) {
	if l == nil {
		return 0
	}
	w.nesting = max(w.nesting, depth)
	for _, n := range l.Nodes {
		cost++
		switch n := n.(type) {
		case *parse.ActionNode:
			cost += w.pipe(n.Pipe, depth)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, filter(shownFunc))
			}
		case *parse.IfNode:
			cost += w.pipe(n.Pipe, depth) + w.list(n.List, depth+1) + w.list(n.ElseList, depth+1)
		case *parse.WithNode:
			cost += w.pipe(n.Pipe, depth) + w.list(n.List, depth+1) + w.list(n.ElseList, depth+1)
		case *parse.RangeNode:
			cost += w.pipe(n.Pipe, depth) + w.list(n.ElseList, depth+1)
			n.Pipe.Cmds = append(n.Pipe.Cmds, filter(rangedFunc))
			body := loopSteps + w.list(n.List, depth+1)
			n.List.Nodes = append([]parse.Node{call(stepFunc, body)}, n.List.Nodes...)
		case *parse.TemplateNode:
			cost += w.pipe(n.Pipe, depth)
		}
	}
	return cost
}

func (w *treeWalk) pipe(p *parse.PipeNode, depth int) (cost int) {
	if p == nil {
		return 0
	}
	w.nesting = max(w.nesting, depth)
	var cmds []*parse.CommandNode
	for i, cmd := range p.Cmds {
		name := ""
		if id, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
			name = id.Ident
		}
		w.makesStrings = w.makesStrings || stringFuncs[name]
		for k, arg := range cmd.Args {
			cost += 1 + w.arg(arg, depth)
			if k > 0 && weighedFuncs[name] {
				cmd.Args[k] = weigh(arg)
			}
		}
		if i > 0 && weighedFuncs[name] {
			cmds = append(cmds, filter(weighedFunc))
		}
		cmds = append(cmds, cmd)
	}
	p.Cmds = cmds
	return cost
}

// arg instruments a parenthesized argument.
func (w *treeWalk) arg(n parse.Node, depth int) int {
	switch n := n.(type) {
	case *parse.PipeNode:
		return w.pipe(n, depth+1)
	case *parse.ChainNode:
		return len(n.Field) + w.arg(n.Node, depth+1)
	case *parse.FieldNode:
		return len(n.Ident)
	case *parse.VariableNode:
		return len(n.Ident)
	case *parse.IdentifierNode:
		w.makesStrings = w.makesStrings || stringFuncs[n.Ident] // as an argument it is called without arguments
	}
	return 0
}

// weigh returns (ARG | _weighed) for an argument that is not a constant.
func weigh(arg parse.Node) parse.Node {
	switch n := arg.(type) {
	case *parse.PipeNode:
		n.Cmds = append(n.Cmds, filter(weighedFunc))
		return n
	case *parse.FieldNode, *parse.VariableNode, *parse.ChainNode, *parse.DotNode, *parse.IdentifierNode:
		pipe := pipeOf("0 | " + weighedFunc)
		pipe.Cmds[0] = &parse.CommandNode{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}}
		return pipe
	}
	return arg
}

// filter returns a command that takes the value of the previous one.
func filter(name string) *parse.CommandNode { return pipeOf("0 | " + name).Cmds[1] }

// call returns the action {{name args…}}.
func call(name string, args ...int) parse.Node {
	text := name
	for _, arg := range args {
		text += " " + strconv.Itoa(arg)
	}
	return actionOf(text)
}

func pipeOf(text string) *parse.PipeNode { return actionOf(text).Pipe }

// actionOf parses an inserted action. Nodes made by hand would lack unexported fields of package
// parse.
func actionOf(text string) *parse.ActionNode {
	known := map[string]any{stepFunc: nil, enterFunc: nil, leaveFunc: nil, shownFunc: nil, rangedFunc: nil,
		weighedFunc: nil}
	for name := range known {
		known[name] = fmt.Sprint
	}
	trees, err := parse.Parse("template", "{{"+text+"}}", "", "", known)
	if err != nil {
		panic("example: " + text + ": " + err.Error())
	}
	return trees["template"].Root.Nodes[0].(*parse.ActionNode)
}

// maxActionBytes bounds the parts of a template between {{ and }}: parsed, they take a few hundred
// times their size.
const maxActionBytes = 32 << 10

// actionBytes counts the bytes of a template between {{ and }}, and the depth of its parentheses.
// Strings in an action may contain both.
func actionBytes(body string) (n, parens int) {
	inside, depth := false, 0
	for i := 0; i < len(body); {
		rest := body[i:]
		switch {
		case !inside && len(rest) >= 2 && rest[:2] == "{{":
			inside, depth = true, 0
			n += 4 // even an empty action takes memory
			i += 2 + commentLen(rest[2:])
			continue
		case inside && len(rest) >= 2 && rest[:2] == "}}":
			inside = false
			i += 2
			continue
		case inside && (rest[0] == '"' || rest[0] == '`' || rest[0] == '\''):
			skip := quotedLen(rest)
			n, i = n+skip, i+skip
			continue
		case inside && rest[0] == '(':
			depth++
			parens = max(parens, depth)
		case inside && rest[0] == ')':
			depth--
		}
		if inside {
			n++
		}
		i++
	}
	return n, parens
}

// commentLen returns the length of the comment that an action begins with, 0 for none.
func commentLen(s string) int {
	text := strings.TrimPrefix(s, "- ")
	if !strings.HasPrefix(text, "/*") {
		return 0
	}
	end := strings.Index(text, "*/")
	if end < 0 {
		return len(s)
	}
	return len(s) - len(text) + end + 2
}

// quotedLen returns the length of the string or character literal that s begins with, len(s) if it
// is not closed.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] != '`':
			i++
		case s[i] == '\n' && s[0] != '`':
			return i // the parser will report an error; scan the rest anyway
		}
	}
	return len(s)
}
