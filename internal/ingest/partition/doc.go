// Package partition is what plan, part and merge share: the plan, which is read whole or for one
// partition alone, the partition that is chosen to be built, and what a part leaves to the merge.
// How a plan is made and how a part is built is the business of package ingest.
package partition
