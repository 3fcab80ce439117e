package jinja

// runTraced runs the template's body as run does. The first loop over the messages is taken for that which
// writes them, if nothing but the prompt follows it.
func (e *execution) runTraced(body []node, s *scope) {
	t, tail := e.trace, []node(nil)
	e.enter()
	for i, n := range body {
		e.step(1)
		over, ok := n.(*forNode)
		if !ok || t.looped || i+1 < e.template.tail {
			e.statement(n, s)
			continue
		}
		e.line = over.line
		items := e.eval(over.over, s)
		base := t.windowOf(items)
		if t.main = base >= 0 && over.test == nil && !over.recursive; t.main {
			t.Base = base
			if len(over.none) > 0 {
				e.tested(items)
			}
		}
		e.loop(over, items, s, 0)
		if t.main {
			t.main, t.looped, t.current = false, true, -1
			e.begin()
			tail = body[i+1:]
		}
	}
	e.leave()
	if t.Local = t.Local && t.looped; t.Local {
		e.runTail(tail, s)
	}
}

func (e *execution) begin() {
	e.trace.Begins = append(e.trace.Begins, Begin{len(e.out.data) - e.out.from, len(e.trace.Marks)})
}

// runTail runs what follows the messages with the prompt. What fails must not fail the execution.
func (e *execution) runTail(body []node, s *scope) {
	t, saved := e.trace, *e
	parts, values := len(e.parts), len(e.values)
	t.again = true
	e.out = &output{data: t.Tail, top: true}
	defer func() {
		t.Tail = e.out.data
		*e = saved
		e.dropParts(parts)
		clear(e.values[values:])
		e.values = e.values[:values]
		if r := recover(); r != nil {
			if _, ok := r.(*RunError); !ok {
				panic(r)
			}
			t.Local = false
		}
	}()
	root := s.parent
	id, used := e.template.ids[t.Prompt]
	if used {
		root.set(id, true)
		defer root.set(id, false)
	}
	e.run(body, s)
}

// isTail reports whether statements only write, and read what no statement of theirs changes.
func isTail(body ...node) bool {
	for _, n := range body {
		switch n := n.(type) {
		case *textNode:
		case *printNode:
			if !readsOnly(n.value) {
				return false
			}
		case *ifNode:
			if !readsOnly(n.tests...) {
				return false
			}
			for _, b := range n.bodies {
				if !isTail(b...) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// readsOnly reports whether expressions call nothing.
func readsOnly(list ...node) bool {
	for _, n := range list {
		ok := false
		switch n := n.(type) {
		case nil, *constExpr, *nameExpr:
			ok = true
		case *attributeExpr:
			ok = readsOnly(n.of)
		case *itemExpr:
			ok = readsOnly(n.of, n.key)
		case *filterExpr:
			ok = readsOnly(n.of) && readsOnly(n.arguments.positional...) && readsOnly(n.arguments.named...) &&
				n.arguments.list == nil && n.arguments.dict == nil
		case *testExpr:
			ok = readsOnly(n.of) && readsOnly(n.arguments.positional...) && len(n.arguments.named) == 0 &&
				n.arguments.list == nil && n.arguments.dict == nil
		case *unaryExpr:
			ok = readsOnly(n.of)
		case *binaryExpr:
			ok = readsOnly(n.left, n.right)
		case *compareExpr:
			ok = readsOnly(n.first) && readsOnly(n.rest...)
		case *condExpr:
			ok = readsOnly(n.test, n.yes, n.no)
		case *concatExpr:
			ok = readsOnly(n.parts...)
		}
		if !ok {
			return false
		}
	}
	return true
}
