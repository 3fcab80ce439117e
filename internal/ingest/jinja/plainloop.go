package jinja

import "strconv"

// A plainLoop is the body of a loop that only writes text, the item and the number of the turn, as most loops of
// templates do.
type plainLoop struct {
	pieces  []piece
	between string // the text between the values of two turns
	after   string // that after the last value
	steps   int64  // what loop and run take for a turn
	indexes int64  // in a turn
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
	last := len(p.pieces) - 1
	if last == 0 {
		return nil // no value
	}
	p.after, p.pieces = p.pieces[last].text, p.pieces[:last]
	p.between = p.after + p.pieces[0].text
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
	out, before := o.data, p.pieces[0].text
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			return false
		}
		for k := range p.pieces {
			if k > 0 {
				before = p.pieces[k].text
			}
			out = append(out, before...)
			if p.pieces[k].value == itemValue {
				out = append(out, text...)
				steps += int64(len(text)) / stepBytes
			} else {
				n := len(out)
				out = strconv.AppendInt(out, int64(i+1), 10)
				bytes += int64(len(out) - n)
			}
		}
		if before = p.between; len(out) > most {
			break
		}
	}
	if out = append(out, p.after...); len(out) > most {
		o.data = out
		e.room(0)
	}
	o.data = out
	e.left.Bytes -= bytes
	e.step(steps)
	return true
}
