package chat

import (
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/spelling"
)

// knownRoles maps the names that records have for roles, in lower case, to the roles that templates know. A
// message of callRole is a call of the assistant.
var knownRoles = map[string]string{
	"system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
	"gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "bot": "assistant",
	"chatbot": "assistant", "model": "assistant", "claude": "assistant", "ai": "assistant",
	callRole: "assistant", "tool_call": "assistant", "tool": "tool", "function": "tool", "observation": "tool",
	"function_response": "tool", "function_result": "tool", "tool_response": "tool", "tool_result": "tool",
	"tool_results": "tool",
}

const callRole = "function_call"

var withUnderscores = strings.NewReplacer("-", "_", " ", "_")

func foldRole(role string) string {
	return withUnderscores.Replace(strings.ToLower(strings.TrimSpace(role)))
}

// isCallRole reports whether a message of a role holds calls as its content.
func isCallRole(role string) bool {
	if len(role) < len("tool_call") || role == "assistant" {
		return false
	}
	folded := foldRole(role)
	return folded == callRole || folded == "tool_call"
}

// ParseRoles parses pairs such as customer=user: roles of records, and those that they mean.
func ParseRoles(pairs []string) (map[string]string, error) {
	roles := map[string]string{}
	for _, pair := range pairs {
		from, to, ok := strings.Cut(pair, "=")
		from, to = strings.ToLower(strings.TrimSpace(from)), strings.TrimSpace(to)
		switch {
		case !ok || from == "" || to == "":
			return nil, fault.Errorf("%q is not a pair of roles, as in customer=user,clerk=assistant", pair)
		case roles[from] != "":
			return nil, fault.Errorf("the role %s is named twice", from)
		}
		if _, known := knownRoles[foldRole(to)]; !known {
			if near := spelling.Nearest(to, slices.Sorted(maps.Keys(knownRoles))); near != "" {
				return nil, fault.Errorf("no role %s is known; did you mean %s?", to, near)
			}
		}
		roles[from] = to
	}
	return roles, nil
}

// meaning returns what a role means: one that templates know, or the role itself. mapped reports whether
// Options.Roles says so.
func (o *Options) meaning(role string) (meaning string, mapped bool) {
	if len(o.Roles) > 0 {
		if to := o.Roles[strings.ToLower(role)]; to != "" {
			role, mapped = to, true
		}
	}
	switch role {
	case "system", "user", "assistant", "tool":
		return role, mapped
	}
	if known := knownRoles[foldRole(role)]; known != "" {
		return known, mapped
	}
	return role, mapped
}

// unknownRoles returns the roles of the messages that mean nothing.
func (c *conversation) unknownRoles() (roles []string) {
	for _, m := range c.messages {
		role := c.meaning(m)
		if knownRoles[role] == "" && !slices.Contains(roles, role) && len(roles) < maxFieldsTold {
			roles = append(roles, values.Shorten(role))
		}
	}
	return roles
}

// role returns the role with which the template is given a message of a role of the record: the record's own
// where the template knows it.
func (j *rendering) role(own string) string {
	role, mapped := j.r.opts.meaning(own)
	if mapped && !slices.Contains(j.mapped, strings.ToLower(own)) {
		j.mapped = append(j.mapped, strings.ToLower(own))
	}
	switch {
	case role == "developer":
		if !j.habits().writes(role) {
			return "system"
		}
	case mapped || role == "assistant" || role == own:
	case j.habits().knows(own, role):
		return own
	}
	return role
}

// noRole is a role that no template knows.
const noRole = "zqnobodyzq"

// writes reports whether the template writes what a role says at the beginning of a conversation.
func (h *habits) writes(role string) bool {
	return known(h.roles, role, func() bool {
		_, written := h.said(role, "system")
		return written
	})
}

// knows reports whether the template treats a role in a way of its own: other than one that it does not know,
// and other than what the role means.
func (h *habits) knows(role, meaning string) bool {
	return known(h.roles, role, func() bool {
		text, written := h.said(role, meaning)
		usual, _ := h.said(meaning, meaning)
		other, ok := h.said(noRole, meaning)
		return written && text != usual && (!ok || !sameBut(text, other, role, noRole) || h.ownToken(text, role, meaning))
	})
}

// ownToken reports whether a text has a control token of the role, as in <|observation|>, and the role's
// meaning has none.
func (h *habits) ownToken(text, role, meaning string) bool {
	is := h.r.opts.IsToken
	token := "<|" + role + "|>"
	return is != nil && strings.Contains(text, token) && is(token) && !is("<|"+meaning+"|>")
}

// sameBut reports whether two texts are alike but for the names in them.
func sameBut(a, b, nameA, nameB string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	n := commonStart(a, b)
	a, b = a[n:], b[n:]
	n = commonEnd(a, b)
	return strings.ReplaceAll(a[:len(a)-n], strings.ToLower(nameA), nameB) == b[:len(b)-n]
}

// said renders a conversation in which a role says a word where its meaning may, and reports whether the word is
// in the text.
func (h *habits) said(role, meaning string) (text string, ok bool) {
	m, user, assistant := message(role, asked), message("user", "Hi"), message("assistant", "Yo")
	switch meaning {
	case "user":
		text = h.render(nil, m, assistant)
	case "tool":
		text = h.render(nil, user, h.call(), result(role, asked), assistant)
	default:
		text = h.render(nil, m, user, assistant)
	}
	return text, strings.Contains(text, asked)
}
