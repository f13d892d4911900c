export { type MachineClock, machineClock } from './machine-clock.ts';
export { networkFileSystem } from './network-file-system.ts';
export { removeWakeFile, wake, WakeFile } from './wake-file.ts';
