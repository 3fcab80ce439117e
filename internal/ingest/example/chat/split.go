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
	row, all := &j.Worker.row, 0
	row.reset()
	dst.ThoughtsLeftOut = 0 // a row may have what the whole lacks
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
		if row.ThoughtsLeftOut > 0 && row.ThoughtsLeftOut > j.thoughtsBefore(i) {
			dst.ThoughtsLeftOut++
		}
		if len(row.Spans) == 0 {
			dst.miss(i)
		} else if err := dst.Turn(row); err != nil {
			return err
		}
	}
	return nil
}

// thoughtsBefore returns how many of the messages before the i-th hold reasoning.
func (j *rendering) thoughtsBefore(i int) (n int) {
	for _, m := range j.messages[:i] {
		if has(m, "reasoning_content") || isAssistant(m) && says(get(m, "content"), thoughtEnd) {
			n++
		}
	}
	return n
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
