// Package chat makes text of records that hold a conversation, and says which parts of the text the
// assistant said.
//
//	record -> conversation (its shape) -> text by the chat template -> spans -> mask of tokens
//
// A record is a JSON object. Its shape is found by its fields (see shapes): messages as OpenAI
// writes them, ShareGPT's conversations, Alpaca's instructions, prompts with completions, and the
// chosen side of preference pairs. The template is Jinja, executed by package jinja as Python does.
//
// A Renderer is immutable and shared; each goroutine owns a Worker of it. These hold:
//
//	I1  Text and spans depend on the record, the template, the special tokens and the date alone.
//	I2  A text has at most TextFactor bytes for each of the record, and Renderer.OverheadBytes.
//	I3  What a record takes besides itself and its text is bounded by Renderer.ScratchBytes.
//	I4  A record whose conversation is not understood is an error that names its fields; no message
//	    is left out silently.
package chat
