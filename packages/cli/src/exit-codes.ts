/** The exit codes of `locks`, beside those of the command that it runs. They are those of `sysexits.h` where it has one. */
export const EXIT = {
  ok: 0,
  /** `release` found nobody to release. */
  nothing: 1,
  /** `prove` saw a promise broken. */
  broken: 1,
  /** `doctor` found something that would break locks. */
  unfit: 1,
  /** `verify` found a rule broken, or a line that is not of a trace. */
  violated: 1,
  /** `once`: an earlier run of this slot failed, and with `--retry next-slot` it is not repeated. */
  failedBefore: 1,
  /** A wrong command line, or one that the store cannot do. */
  usage: 64,
  /** The store did not answer, or refused. */
  unavailable: 69,
  /** The lease was lost while the command ran. */
  lost: 70,
  /** `once`: a slot lies in the future. The clock of this machine is ahead, or was that of the machine that wrote the slot store. */
  clock: 71,
  /** The output could not be written. */
  io: 74,
  /** The lock was not free within `--wait`. */
  contended: 75,
  /** The command cannot be run (126), is not found (127), or was ended by a signal (128 and more), as in a shell. */
  notExecutable: 126,
  notFound: 127,
  signal: 128,
} as const;
