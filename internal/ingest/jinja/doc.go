// Package jinja renders templates as Python's jinja2 does with the settings of Hugging Face's
// transformers: trim_blocks, lstrip_blocks, loop controls, the immutable sandbox, {% generation %}
// blocks, and a tojson that escapes no HTML. Chats use it, and so do templates of records.
//
// Parse makes a Template, which is immutable; Render executes it with a Dict of variables. The text
// equals Python's to the byte: dictionaries keep their order, numbers print as in Python, strings
// are indexed by character, and undefined values fail where they fail there.
//
// A template is code that comes with a tokenizer and is not trusted:
//
//	I1  An execution takes at most Limits.Steps steps; a step is a node, an element or some bytes.
//	I2  It makes at most Limits.Bytes bytes of values and text; they are counted before they are
//	    allocated.
//	I3  It writes at most Limits.Output bytes.
//	I4  Expressions and blocks nest at most maxDepth deep; with calls, an execution nests at most
//	    maxCalls deep.
//	I5  It reads only its variables: no files, no clock, no attributes of Go values.
//
// Statements that load other templates (include, import, extends) are refused by Parse.
package jinja
