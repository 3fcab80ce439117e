package jinja

import "strconv"

// A plainLoop is the body of a loop that only writes text, the item and the number of the turn, as most loops of
// templates do.
type plainLoop struct {
	pieces  []piece
	steps   int64 // what loop and run take for a turn
	indexes int64 // in a turn
}

// A piece is text and what follows it.
type piece struct {
	text  string
	value pieceValue
}

type pieceValue uint8

const (
	noValue pieceValue = iota
	itemValue
	indexValue // loop.index
)

// turnDigits is the length of the longest number of a turn.
const turnDigits = 19

// plainBody returns the plain form of a loop, nil if it has none.
func plainBody(n *forNode) *plainLoop {
	target, ok := n.target.(*nameExpr)
	if !ok || n.test != nil || n.recursive || target.id == loopID {
		return nil
	}
	p := &plainLoop{steps: 1, pieces: make([]piece, 1)}
	for _, s := range n.body {
		last := &p.pieces[len(p.pieces)-1]
		p.steps++
		switch s := s.(type) {
		case *textNode:
			last.text += s.text
			p.steps += int64(len(s.text)) / stepBytes
		case *printNode:
			value, steps := plainValue(s.value, target.id)
			if value == noValue {
				return nil
			}
			if last.value, p.steps = value, p.steps+steps; value == indexValue {
				p.indexes++
			}
			p.pieces = append(p.pieces, piece{})
		default:
			return nil
		}
	}
	return p
}

// plainValue returns what an expression in a loop is, and the steps that it takes.
func plainValue(n node, item int) (value pieceValue, steps int64) {
	switch n := n.(type) {
	case *nameExpr:
		if n.id == item {
			return itemValue, 1
		}
	case *attributeExpr:
		if of, ok := n.of.(*nameExpr); ok && of.id == loopID && n.name == "index" {
			return indexValue, 3
		}
	}
	return noValue, 0
}

// plain runs a loop over text whose output is that of the template. It does what loop does, at the same charge, and
// reports false if it leaves that to loop.
func (e *execution) plain(p *plainLoop, items []any) bool {
	o, turns := e.out, int64(len(items))
	most := o.from + int(e.limits.Output)
	steps, bytes := turns*p.steps, int64(scopeBytes)
	if e.trace != nil || !o.top || e.template.marks || e.depth > maxCalls/2 ||
		e.left.Steps < steps+e.limits.Output/stepBytes || e.left.Bytes < bytes+turns*p.indexes*turnDigits {
		return false
	}
	out := o.data
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			return false
		}
		for k := range p.pieces {
			piece := &p.pieces[k]
			out = append(out, piece.text...)
			switch piece.value {
			case itemValue:
				out = append(out, text...)
				steps += int64(len(text)) / stepBytes
			case indexValue:
				n := len(out)
				out = strconv.AppendInt(out, int64(i+1), 10)
				bytes += int64(len(out) - n)
			}
		}
		if len(out) > most {
			o.data = out
			e.room(0)
		}
	}
	o.data = out
	e.left.Bytes -= bytes
	e.step(steps)
	return true
}
