// MapLibre's worker, built as a file of our own.
import 'maplibre-gl/dist/maplibre-gl-worker.mjs';
