/** How many frames are kept: some ten are of core and of Node. */
const FRAMES = 24;
/** The folder of the modules of core, `dist` or `src`; `undefined` in a bundle, which has one file for all. */
const OWN_FOLDER = /(?:file:\/\/|\()?([^\s(]*[\\/](?:dist|src)[\\/])(?:lint[\\/])?[^\\/]*$/.exec(
  new Error().stack?.split('\n')[1] ?? '',
)?.[1];

/** Where code asked for a lock. The text is made when somebody reads it. */
export class Place {
  declare private readonly stack: string;

  constructor() {
    const before = Error.stackTraceLimit;
    Error.stackTraceLimit = FRAMES;
    Error.captureStackTrace(this, Place);
    Error.stackTraceLimit = before;
  }

  /** The frames of the application, one a line, innermost first. */
  get frames(): string {
    const all = this.stack.split('\n').slice(1);
    const others = all.filter((line) => !line.includes('node:') && !isOwn(line));
    return (others.length > 0 ? others : all).map((line) => line.trim()).join('\n');
  }
}

function isOwn(line: string): boolean {
  return OWN_FOLDER !== undefined && line.includes(OWN_FOLDER);
}
