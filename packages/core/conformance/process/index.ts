export { setWallClock } from '../child/wall-clock.ts';
export { machineNow } from '../critical-section.ts';
export { CallableProcess, startProcess } from './callable-process.ts';
export { serveCalls } from './serve-calls.ts';
