// Runs hnswlib for make bench: hnswlib PREFIX, one JSON command a line on standard input, one JSON answer a line.
//
//   {"ef":0}   build the graph of PREFIX.base with hnswlib's own M and efConstruction
//   {"ef":EF}  search all of PREFIX.queries for the ten nearest
//
// The answer is {"cpu":ms,"recall":share}: CPU time of this thread for one insert or query, and the share of PREFIX.answers found.
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

static const size_t dim = 256, nearest = 10;

static double now() {
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

template <class T>
static std::vector<T> load(std::string path) {
	FILE *f = fopen(path.c_str(), "rb");
	if (!f) perror(path.c_str()), exit(1);
	std::vector<T> v;
	T x[4096];
	for (size_t n; (n = fread(x, sizeof(T), 4096, f)) > 0;) v.insert(v.end(), x, x + n);
	fclose(f);
	return v;
}

int main(int, char **argv) {
	std::string prefix = argv[1];
	auto base = load<float>(prefix + ".base"), queries = load<float>(prefix + ".queries");
	auto answers = load<int>(prefix + ".answers");
	size_t n = base.size() / dim, asked = queries.size() / dim;
	hnswlib::InnerProductSpace space(dim);
	hnswlib::HierarchicalNSW<float> graph(&space, n);
	int ef;
	while (scanf(" {\"ef\":%d}", &ef) == 1) {
		size_t found = 0;
		double start = now();
		if (ef == 0) {
			for (size_t i = 0; i < n; i++) graph.addPoint(&base[i * dim], i);
			printf("{\"cpu\":%g}\n", (now() - start) / n);
		} else {
			graph.setEf(ef);
			for (size_t i = 0; i < asked; i++) {
				auto hits = graph.searchKnn(&queries[i * dim], nearest);
				int *want = &answers[i * nearest];
				for (; !hits.empty(); hits.pop()) found += std::count(want, want + nearest, (int)hits.top().second);
			}
			printf("{\"cpu\":%g,\"recall\":%g}\n", (now() - start) / asked, double(found) / nearest / asked);
		}
		fflush(stdout);
	}
}
