// Package report is what a build says of itself: how far it is while it runs, what it made, and
// sentences about what it left out, cut or skipped. It is made of counts and manifests, and knows
// nothing of how they came about.
package report
