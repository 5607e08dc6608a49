import { mount } from 'svelte';
import App from './App.svelte';
import { start } from './router.svelte';
import { loadSession } from './session.svelte';
import './style/tokens.css';
import './style/base.css';
import { preferred, speak } from './words.svelte';

start();
void loadSession();
await speak(preferred()).catch(() => speak('en'));
mount(App, { target: document.body });
