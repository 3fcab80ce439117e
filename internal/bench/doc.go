// Package bench measures dsload on this machine: whole builds and servers as processes of their own, whose cost the
// kernel counts, and tokenizers within this one.
package bench
