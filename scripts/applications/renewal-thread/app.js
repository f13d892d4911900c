// `app.js [module]`: by default the thread has the module beside this one.
import process from 'node:process';
import makeBackend from './locks-backend.js';
import { outcomes } from './outcomes.js';

const module = process.argv[2] ?? new URL('./locks-backend.js', import.meta.url);
outcomes(module, makeBackend).then((outcome) => console.log(JSON.stringify(outcome)));
