package chat

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/fault"
)

// splitBytes is the most text of all rows of a conversation that is split: each has what the rows before it have.
const splitBytes = 256 << 20

// split renders, for each turn that is trained on, the messages up to it, and gives the text to dst.Turn. So a row
// ends where the model stops, and holds what it will see before: many templates leave the reasoning of earlier
// turns out.
func (j *rendering) split(dst *Text) error {
	row, all, thoughts := &j.Worker.row, 0, 0 // messages with reasoning, up to next
	next := 0
	dst.ThoughtsLeftOut = 0
	defer func() {
		if cap(row.Text) > keptBytes {
			row.Text = nil
		}
	}()
	for _, i := range j.turnsToTrain() {
		c := *j.conversation
		c.messages, c.untrained = slices.Clone(j.messages[:i+1]), slices.Repeat([]bool{true}, i+1)
		c.untrained[i] = false
		part := &rendering{Worker: j.Worker, conversation: &c, form: j.form, size: j.size}
		lost, err := part.attempt(row)
		if err == nil && len(lost) > 0 {
			err = part.lostError(lost)
		}
		if all += len(row.Text); err == nil && all > splitBytes {
			err = fault.Of(ErrTooLarge, "its rows, one a turn, have more than %d bytes of text in all; split it, or leave "+
				"{split-turns} out", splitBytes)
		}
		if err != nil {
			return fmt.Errorf("the row that ends with %s: %w", j.name(j.origins[i].index), err)
		}
		for ; next < i; next++ {
			thoughts += bit(j.thinks(next))
		}
		dst.ThoughtsLeftOut += bit(row.ThoughtsLeftOut > thoughts) // of this turn
		if len(row.Spans) == 0 {
			dst.miss(i)
		} else if err := dst.Turn(row); err != nil {
			return err
		}
	}
	return nil
}

// thinks reports whether a message holds reasoning.
func (j *rendering) thinks(i int) bool {
	m := j.messages[i]
	return has(m, "reasoning_content") || isAssistant(m) && says(get(m, "content"), thoughtEnd)
}

func bit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// turnsToTrain returns the messages that are turns to train on.
func (j *rendering) turnsToTrain() (turns []int) {
	for i, m := range j.messages {
		if isAssistant(m) && !j.untrained[i] {
			turns = append(turns, i)
		}
	}
	if j.r.opts.TrainOn == TrainLast && len(turns) > 0 {
		turns = turns[len(turns)-1:]
	}
	return turns
}
