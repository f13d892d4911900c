import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import HomeNumbers from './components/HomeNumbers.vue';
import HomeSource from './components/HomeSource.vue';
import PlayGround from './components/PlayGround.vue';
import SizingCalculator from './components/SizingCalculator.vue';
import TableFilter from './components/TableFilter.vue';
import WhichBackend from './components/WhichBackend.vue';
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('HomeNumbers', HomeNumbers);
    app.component('HomeSource', HomeSource);
    app.component('PlayGround', PlayGround);
    app.component('SizingCalculator', SizingCalculator);
    app.component('TableFilter', TableFilter);
    app.component('WhichBackend', WhichBackend);
  },
} satisfies Theme;
