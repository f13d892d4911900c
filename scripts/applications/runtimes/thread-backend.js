import process from 'node:process';
import { openStore } from './stores.js';

export default async () => (await openStore(process.env.LOCKS_STORE)).backend;
