#!/usr/bin/env bash
# Plans, builds and merges a dataset with Slurm. Run it again after any failure: the plan is kept,
# finished partitions are skipped.
#
#   deploy/slurm/submit.sh PARTITIONS OUT [build flags] SOURCE...
set -euo pipefail
if [ "$#" -lt 3 ]; then
  sed -n '2,5p' "$0" >&2
  exit 2
fi
partitions=$1
OUT=$(realpath -m "$2")
shift 2
PLAN=$OUT.plan.json
here=$(cd "$(dirname "$0")" && pwd)
export OUT PLAN
if [ ! -e "$PLAN" ]; then
  "${DSLOAD:-dsload}" plan --partitions "$partitions" --out "$PLAN" "$@"
else
  echo "using the plan in $PLAN, whatever flags and sources are given now; remove it to plan again" >&2
fi
tasks=$((partitions < ${TASKS:-16} ? partitions : ${TASKS:-16}))
job=$(sbatch --parsable --array="0-$((tasks - 1))" "$here/build.sbatch")
sbatch --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$here/merge.sbatch"
echo "building $partitions partitions in $tasks tasks as job ${job%%;*}; merged into $OUT after them"
