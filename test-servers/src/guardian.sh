# Outlives the process that starts servers, just long enough to clean up after it, however it ended (kill -9 included).
# usage:  sh guardian.sh TMPDIR        stdin: a pipe whose other end only the guarded process holds
# stdout: first the directory for all servers' data, then one line for every `guard` that took effect
# stdin:  `guard PID` and `release PID`, where PID leads a process group; `run MARK`: every process whose environment has
#         LOCKS_RUN=MARK… (Linux); end of input: kill the groups and these processes, delete the directory

# An answer to a process that has just died must not end this one before its work.
trap '' PIPE HUP INT TERM

base=$(mktemp -d "$1/locks-servers-XXXXXX") || exit 1
# Servers that run as another user must be able to reach their own directory.
chmod 711 "$base"
printf '%s\n' "$base"

pids=''
run=''
while read -r verb pid; do
  case $verb in
    guard)
      pids="$pids $pid"
      printf '%s\n' "$pid"
      ;;
    release)
      rest=''
      for other in $pids; do
        [ "$other" = "$pid" ] || rest="$rest $other"
      done
      pids=$rest
      ;;
    run)
      run=$pid
      ;;
  esac
done

# SIGKILL also ends stopped processes.
for pid in $pids; do
  kill -9 "-$pid" 2>/dev/null
done
if [ -n "$run" ]; then
  for environment in $(grep -lsa "LOCKS_RUN=$run" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${environment#/proc/}
    kill -9 "${pid%/environ}" 2>/dev/null
  done
fi
# A dying server may still create a file: try until the directory is gone.
tries=0
# A file system in memory that was mounted in it: conditions/small-disk.ts.
for disk in "$base"/disk-*; do
  [ -d "$disk" ] && umount -l "$disk" 2>/dev/null
done
until rm -rf -- "$base" 2>/dev/null && [ ! -e "$base" ]; do
  tries=$((tries + 1))
  [ "$tries" -ge 100 ] && exit 1
  sleep 0.05
done
