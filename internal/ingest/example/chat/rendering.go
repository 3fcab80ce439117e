package chat

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// rendering is the state of rendering one record.
type rendering struct {
	*Worker
	*conversation
	anchors
	watch
	claims         []claim
	looked         int // bytes of text in which strings were looked for
	form           *form
	size           int64 // the record's size
	spent, allowed int64 // bytes rendered for comparisons
}

// inForm renders the conversation as it is, or in the other form of its contents if the template takes that, and
// returns the rendering of which dst is the text. A form that the template is known not to take is tried last.
func (j *rendering) inForm(dst *Text, lists bool) (*rendering, error) {
	listsFirst := !lists && j.takesListsAlone()
	if listsFirst {
		other, lost, err := j.otherwise(dst, lists)
		if err == nil && len(lost) == 0 || errors.Is(err, ErrStopped) {
			return cmp.Or(other, j), err
		}
	}
	lost, err := j.attempt(dst)
	if errors.Is(err, ErrStopped) || err == nil && len(lost) == 0 {
		return j, err
	}
	if !listsFirst {
		other, still, again := j.otherwise(dst, lists)
		if again == nil && len(still) == 0 || errors.Is(again, ErrStopped) {
			return cmp.Or(other, j), again
		}
	}
	if err == nil {
		err = j.lostError(lost)
	}
	return j, err
}

// attempt renders the conversation as it is. lost are the messages whose words the template leaves out.
func (j *rendering) attempt(dst *Text) (lost []int, err error) {
	dst.Text, dst.Spans, dst.Losses = dst.Text[:0], dst.Spans[:0], Losses{}
	w := j.Worker
	*j = rendering{Worker: w, conversation: j.conversation, form: j.form, size: j.size}
	j.places, j.used, j.claims = w.spare.places, w.spare.used, w.spare.claims
	defer j.release()
	j.prepareTrace()
	var spans []jinja.Span
	dst.Text, spans, err = j.render(dst.Text, j.messages, false)
	j.watch.text = dst.Text
	settled := err != nil || j.claim()
	switch {
	case err != nil, w.r.opts.TrainOn == TrainAll, dst.Turn != nil:
	case j.form.template.HasGeneration():
		dst.Exact = true
		err = j.blocks(dst, spans)
	default:
		err = j.turns(dst)
	}
	if err == nil && !settled {
		err = j.settle(dst.Text)
	}
	if err == nil && w.r.opts.Reasoning == MaskReasoning && len(dst.Spans) > 0 {
		err = j.maskReasoning(dst)
	}
	if cap(w.before)+cap(w.after) > keptBytes {
		w.before, w.after = nil, nil
	}
	w.trace.Forget()
	w.other.Places = nil
	w.other.Forget()
	if err == nil && j.r.Blind() == "" {
		lost = j.account(&dst.Losses, dst.Text)
	}
	if err != nil || len(lost) > 0 || w.r.opts.SplitTurns {
		for n := range j.places { // takes the anchors out
			j.places[n].set(j.places[n].text)
		}
	}
	return lost, err
}

// release gives back the room for anchors, unless there were many, and drops what they refer to.
func (j *rendering) release() {
	clear(j.places)
	if cap(j.places) <= keptPlaces {
		j.spare.places, j.spare.used, j.spare.claims = j.places[:0], j.used[:0], j.claims[:0]
	}
	if j.given != nil {
		j.given.Set("tools", nil)
		j.given.Set("messages", nil)
	}
}

// promptName is the variable that asks for a generation prompt.
const promptName = "add_generation_prompt"

// outputBytes returns the length of the longest text of a rendering.
func (j *rendering) outputBytes() int64 {
	return j.r.textBytes(j.size) + int64(2*anchorBytes*j.anchored)
}

// limits returns those of one execution, which writes so much.
func (j *rendering) limits(output int64) jinja.Limits {
	return jinja.Limits{Steps: renderSteps + renderStepsPerByte*j.size, Bytes: renderBytes + renderPerByte*j.size,
		Output: output}
}

// render executes the template on messages.
func (j *rendering) render(dst []byte, messages []*jinja.Dict, prompt bool) ([]byte, []jinja.Span, error) {
	o := &j.r.opts
	j.items = j.items[:0]
	for _, m := range messages {
		j.items = append(j.items, m)
	}
	defer func() {
		if clear(j.items); cap(j.items) > keptItems {
			j.items = nil
		}
	}()
	if j.given == nil {
		j.given = o.Special.Clone()
	}
	given, list := j.given, &jinja.List{Items: j.items}
	given.Set("tools", j.tools)
	given.Set("documents", nil)
	given.Set("messages", list)
	given.Set(promptName, prompt)
	if j.variables != nil {
		given = given.Clone()
		for _, key := range j.variables.Keys() {
			if v := get(j.variables, key); key != "tools" || jinja.HasValue(v) { // an empty list, or null, leaves the record's
				given.Set(key, v)
			}
		}
	}
	limits := j.limits(j.outputBytes())
	trace := j.watch.next
	if j.watch.next = nil; trace != nil {
		trace.Messages = list
	}
	out, spans, used, err := j.form.template.Render(dst, given, jinja.Options{
		Limits: limits, Now: o.Date, Done: j.done, Scratch: &j.scratch, Trace: trace,
	})
	if trace != nil && !(fits(trace, used.Steps, limits.Steps) && fits(trace, used.Bytes, limits.Bytes)) {
		trace.Faithful, trace.Local = false, false
	}
	var raised *jinja.RaisedError
	switch {
	case err == nil, errors.Is(err, ErrStopped):
		return out, spans, err
	case errors.As(err, &raised):
		err = fault.Of(ErrTemplate, "the chat template refuses the conversation: %s", raised.Message)
	case errors.Is(err, jinja.ErrLimit):
		err = fault.Of(ErrTooLarge, "%v", err)
	default:
		err = fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	return dst, nil, err
}
