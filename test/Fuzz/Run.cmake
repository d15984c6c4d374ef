# Runs a fuzz target from its seeds for a fixed number of inputs. What it finds
# interesting goes to a folder that starts empty, so that each run is the same.
file(REMOVE_RECURSE "${FOUND}")
file(MAKE_DIRECTORY "${FOUND}")
set(dict)
if(EXISTS "${DICT}")
  set(dict "-dict=${DICT}")
endif()
execute_process(
  COMMAND "${TARGET}" -runs=${RUNS} -seed=1 -max_len=${MAX_LEN}
    -malloc_limit_mb=4096 -rss_limit_mb=4096 -timeout=20 -print_final_stats=1
    ${dict} "-artifact_prefix=${FOUND}/" "${FOUND}" "${SEEDS}"
  RESULT_VARIABLE result OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${TARGET} failed; the input is in ${FOUND}:\n${log}")
endif()
string(REGEX MATCH "number_of_executed_units: [0-9]+" units "${log}")
if(NOT units)
  message(FATAL_ERROR "${TARGET} executed nothing:\n${log}")
endif()
message(STATUS "${units}")
