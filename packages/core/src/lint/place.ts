/** How many frames are kept: some ten are of core and of Node. */
const FRAMES = 24;
const OWN_FOLDER = ownFolderOf(new Error().stack?.split('\n')[1] ?? '');

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

/**
 * The folder of the modules of core, `dist` or `src`, of which the frame of a stack has one; `undefined` in a bundle, which has one file for
 * all, often in the application's own `dist`.
 */
export function ownFolderOf(frame: string): string | undefined {
  return /(?:file:\/\/|\()?([^\s(]*[\\/](?:@locks|packages)[\\/]core[\\/](?:dist|src)[\\/])(?:lint[\\/])?[^\\/]*$/.exec(
    frame,
  )?.[1];
}

function isOwn(line: string): boolean {
  return OWN_FOLDER !== undefined && line.includes(OWN_FOLDER);
}
