# shellcheck shell=bash
# Runs the parts of a check one after the other, with their time and outcome; sourced after lib.sh.

leg_lines=()
passed_total=0
failed_total=0

# The tests that a log counts: `cargo test` says one line a binary, `node --test` one line a run.
count_tests() {
  awk -v wanted="$2" '
    /^test result: / {
      for (i = 1; i < NF; i++) {
        if ($(i + 1) == "passed;") total["passed"] += $i
        if ($(i + 1) == "failed;") total["failed"] += $i
      }
    }
    /^(ℹ|#) pass [0-9]+$/ { total["passed"] += $3 }
    /^(ℹ|#) fail [0-9]+$/ { total["failed"] += $3 }
    /^(ℹ|#) cancelled [0-9]+$/ { total["failed"] += $3 }
    END { print total[wanted] + 0 }
  ' < <(sed 's/\x1b\[[0-9;]*m//g' "$1")
}

# leg check|tests NAME COMMAND…: returns the command's outcome. A check that fails counts as one failure; so does a
# set of tests that ends badly without a failed test, or that holds none.
leg() {
  local kind="$1" name="$2" log started seconds status passed=0 failed=0
  shift 2
  log="$(mktemp)"
  say "$name"
  started=$SECONDS
  if "$@" 2>&1 | tee "$log"; then status=0; else status=$?; fi
  seconds=$((SECONDS - started))
  if [ "$kind" = tests ]; then
    passed="$(count_tests "$log" passed)"
    failed="$(count_tests "$log" failed)"
    if [ "$((passed + failed))" = 0 ] && [ "$status" = 0 ]; then
      printf 'error: no test was run\n' >&2
      status=1
    fi
  fi
  rm -f "$log"
  if [ "$status" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
  if [ "$status" = 0 ] && [ "$failed" != 0 ]; then status=1; fi
  passed_total=$((passed_total + passed))
  failed_total=$((failed_total + failed))
  local outcome=ok counts=""
  if [ "$status" != 0 ]; then outcome=FAILED; fi
  if [ "$kind" = tests ]; then counts="$passed passed, $failed failed"; fi
  leg_lines+=("$(printf '  %-28s %-7s %5d s  %s' "$name" "$outcome" "$seconds" "$counts")")
  return "$status"
}

# skip NAME WHY: something that must run but cannot is a failure.
skip() {
  failed_total=$((failed_total + 1))
  leg_lines+=("$(printf '  %-28s %-7s %5s    %s' "$1" SKIPPED - "$2")")
}

summary() {
  printf '\n'
  say "Summary"
  printf '%s\n' "${leg_lines[@]}"
}
